package configs

import (
	"reflect"
	"slices"
	"strings"
)

// Setting is one row of the reference of all settings.
type Setting struct {
	// Path is the key's path; endpoints[] stands for each element of the list.
	Path string
	// Doc is a sentence for users.
	Doc string
	// Default is the built-in value as YAML; empty where there is none, or for a section.
	Default string
	// Restart tells that a change takes effect only with a restart.
	Restart bool
	// Section tells that the key holds others.
	Section bool
}

// Reference lists all settings in the order of full.yaml.
func Reference() []Setting {
	c := Defaults()
	settings := describe(c.fields(), "")
	e := Endpoint{Policy: c.Defaults}
	for i, s := range settings {
		if s.Path == "endpoints" {
			return slices.Insert(settings, i+1, describe(e.fields(), "endpoints[]")...)
		}
	}
	return settings
}

func describe(s section, path string) []Setting {
	var settings []Setting
	for _, f := range s {
		key := joinPath(path, f.name)
		inner, isSection := subsection(f.kind)
		setting := Setting{Path: key, Doc: f.doc, Restart: f.restart, Section: isSection}
		if v := f.kind.show(); v != nil && !isSection {
			setting.Default = showValue(v)
		}
		settings = append(settings, setting)
		settings = append(settings, describe(inner, key)...)
	}
	return settings
}

func subsection(k kind) (section, bool) {
	switch k := k.(type) {
	case section:
		return k, true
	case retrySection:
		return k.section, true
	}
	return nil, false
}

func showValue(v any) string {
	var b strings.Builder
	writeMapping(&b, mapping{{"x", v}}, "", "")
	return strings.TrimSpace(strings.TrimPrefix(b.String(), "x:"))
}

// homesOf lists the sections that have a key of this name.
func (r *reader) homesOf(name string) []string {
	if r.reference == nil {
		r.reference = Reference()
	}
	var homes []string
	for _, s := range r.reference {
		if home, ok := strings.CutSuffix(s.Path, "."+name); ok {
			homes = append(homes, home)
		}
	}
	if len(homes) > 3 {
		return homes[:3]
	}
	return homes
}

// RestartOnly names the settings in which the two configurations differ and that only a restart can change.
func RestartOnly(old, new *Config) []string {
	return differing(old.fields(), new.fields(), "")
}

func differing(old, new section, path string) []string {
	var names []string
	for i, f := range old {
		key := joinPath(path, f.name)
		if inner, ok := subsection(f.kind); ok {
			other, _ := subsection(new[i].kind)
			names = append(names, differing(inner, other, key)...)
			continue
		}
		if f.restart && !reflect.DeepEqual(f.kind.raw(), new[i].kind.raw()) {
			names = append(names, key)
		}
	}
	return names
}
