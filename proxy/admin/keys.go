package admin

import "net/http"

// keysJSON says which keys the spool's records are encrypted with. Names of keys tell nothing about them; "none" stands for
// no encryption.
type keysJSON struct {
	Newest string   `json:"newest"` // what is written is encrypted with it
	InUse  []string `json:"in_use"` // what may be there still
	// Rewriting tells that records are being rewritten with the newest.
	Rewriting bool `json:"rewriting"`
	// CopyOwed tells that free pages of the file may still hold what was there before the newest key.
	CopyOwed bool `json:"copy_owed"`
}

func (h *Handler) showKeys(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	out := keysJSON{Newest: "none", InUse: []string{"none"}}
	if h.parts.Keys != nil {
		st := h.parts.Keys.Keys()
		out = keysJSON{st.Newest, st.InUse, st.Rewriting, st.CopyOwed}
	}
	return reply{body: out}, nil
}
