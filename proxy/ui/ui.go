// Package ui holds the pages: the dashboard of one Postern and the page of a fleet. They are plain HTML, CSS and ES
// modules, embedded as they are written, and need no build step.
//
// It promises that a page is the same for everybody (whatever it shows, it asks the API for, with the token that the
// reader gives it), that it loads nothing from anywhere else, and a policy that lets the browser enforce that: no inline
// script or style, no markup made from strings. It leaves out who may ask (package guard) and all data.
package ui

import (
	"embed"
	"net/http"
	"path"
	"strconv"
)

//go:embed assets
var assets embed.FS

// policy is the Content-Security-Policy of the pages. Trusted types keep every text from becoming markup by accident.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are all there are. A file of another kind is no part of a page.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Dashboard serves the page of one Postern at / and its files below /ui/.
func Dashboard() http.Handler { return page("index.html") }

// Fleet serves the page of a fleet at / and its files below /ui/.
func Fleet() http.Handler { return page("fleet.html") }

func page(start string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := start
		if r.URL.Path != "/" {
			name = path.Base(r.URL.Path)
		}
		kind, known := types[path.Ext(name)]
		text, err := assets.ReadFile("assets/" + name)
		if !known || err != nil || r.URL.Path != "/" && (r.URL.Path != "/ui/"+name || kind == types[".html"]) {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store") // a page and its parts are always of one version
		header.Set("Content-Type", kind)
		header.Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text) // the browser may be gone; there is nobody left to tell
	})
}
