package admin

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var pageHTML []byte

// startPage lists what there is. It has no script, style or form, so that the policy that admitted sets fits it.
func startPage(w http.ResponseWriter, _ *http.Request) {
	writeText(w, "text/html; charset=utf-8", http.StatusOK, pageHTML)
}
