package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// masked stands for a secret wherever one would be shown.
const masked = "***"

const maxSecretBytes = 64 * kib // no header or key is longer; a path to a log file is a mistake

// errUnset means that a variable is not there. Its text names the variable, which is no secret.
type errUnset struct{ name string }

func (e errUnset) Error() string {
	return fmt.Sprintf("the environment variable %s is not set; set it, or use file:PATH", e.name)
}

// secretText reads a scalar that is a secret: ${VAR} is replaced, file:PATH is read, line breaks at the end go.
func (r *reader) secretText(n ast.Node, path string) (string, bool) {
	text, ok := r.rawText(n, path)
	if !ok {
		return "", false
	}
	text, err := r.resolveSecret(text)
	if err != nil {
		r.add(n, path, "%v", err)
		return "", false
	}
	return text, true
}

func (r *reader) resolveSecret(text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "file:"); ok {
		return r.readSecret(strings.TrimRight(name, "\r\n"))
	}
	text, err := r.expand(text)
	return strings.TrimRight(text, "\r\n"), err
}

// expand replaces each ${VAR}. What a variable holds is taken as it is: it is not expanded again.
func (r *reader) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !isVariable(name) {
			return "", errors.New("${ begins a variable; write ${NAME} with letters, digits and _, or keep the secret in a file (file:PATH)")
		}
		value, ok := r.getenv(name)
		if !ok {
			return "", errUnset{name}
		}
		out.WriteString(value)
		text = after
	}
}

func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func (r *reader) readSecret(name string) (string, error) {
	if _, err := filePath(name); err != nil {
		return "", err
	}
	data, err := readLimited(inDir(r.base, name), maxSecretBytes)
	if err != nil {
		return "", fmt.Errorf("%w; correct the path, which is relative to the configuration file, or create the file", err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("the file %s is empty; write the secret into it", quote(name))
	}
	return text, nil
}

// unread is the error of a file with a secret that cannot be read.
func unread(err error) error {
	if short := nameless(err); short != err {
		return fmt.Errorf("cannot be read: %w", short)
	}
	return err
}

// nameless leaves the name of a file out of an error: where a file is wanted, people also write the token or the key
// itself. Line and key of the configuration tell which one it is.
func nameless(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%w; write the name of a file, relative to the configuration file", failed.Err)
	}
	return err
}

func inDir(dir, name string) string {
	if dir == "" || filepath.IsAbs(name) {
		return name // as it was written
	}
	return filepath.Join(dir, name)
}
