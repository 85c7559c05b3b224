package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program is the module with its types: every package of ours from source, so that a field or a function is the same
// object wherever it is used, and everything else from the compiler's export data.
type program struct {
	fset  *token.FileSet
	info  *types.Info
	ours  map[string]*types.Package
	files map[string][]*ast.File // by import path
	order []string               // import paths, each after what it imports
	third types.Importer         // finds what is not ours
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// loadedOnce is the program for all tests, also of further rounds.
var loadedOnce = sync.OnceValues(load)

func loadProgram(t *testing.T) *program {
	t.Helper()
	p, err := loadedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// load asks the go command for the module's packages, in the order of their imports, and checks their types.
func load() (*program, error) {
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Module", "postern/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	p := &program{fset: token.NewFileSet(), ours: map[string]*types.Package{}, files: map[string][]*ast.File{}, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{},
	}}
	exports := map[string]string{}
	p.third = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listedPackage
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		if l.Module == nil || !l.Module.Main {
			exports[l.ImportPath] = l.Export
			continue
		}
		var names []string
		for _, name := range l.GoFiles {
			names = append(names, filepath.Join(l.Dir, name))
		}
		if err := p.check(l.ImportPath, names); err != nil {
			return nil, err
		}
		p.order = append(p.order, l.ImportPath)
	}
}

// with adds one more package, from a folder that the go command does not look at, and returns its files.
func (p *program) with(t *testing.T, dir string) []*ast.File {
	t.Helper()
	if files := p.files["postern/"+dir]; files != nil {
		return files
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %d files", dir, err, len(names))
	}
	if err := p.check("postern/"+dir, names); err != nil {
		t.Fatal(err)
	}
	return p.files["postern/"+dir]
}

// check parses and checks one package of ours.
func (p *program) check(path string, names []string) error {
	for _, name := range names {
		f, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files[path] = append(p.files[path], f)
	}
	conf := types.Config{Importer: ourImporter{p}}
	pkg, err := conf.Check(path, p.fset, p.files[path], p.info)
	if err != nil {
		return fmt.Errorf("check the types of %s: %w", path, err)
	}
	p.ours[path] = pkg
	return nil
}

// ourImporter finds packages of ours as they were checked from source.
type ourImporter struct{ *program }

// Import implements types.Importer.
func (i ourImporter) Import(path string) (*types.Package, error) {
	if pkg, ok := i.ours[path]; ok {
		return pkg, nil
	}
	return i.third.Import(path)
}
