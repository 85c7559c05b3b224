package admin

import (
	"log/slog"
	"net/http"
	"time"

	"postern/spool"
)

func (h *Handler) listEvents(r *http.Request) (reply, error) {
	q, err := eventQuery(r)
	if err != nil {
		return reply{}, err
	}
	page, err := h.parts.Spool.List(q)
	if err != nil {
		return reply{}, err
	}
	return reply{body: struct {
		Events []eventJSON `json:"events"`
		Next   *string     `json:"next_cursor"`
	}{h.events(page.Events), orNull(page.Next)}}, nil
}

func (h *Handler) events(views []spool.View) []eventJSON {
	out := make([]eventJSON, 0, len(views))
	for i := range views {
		out = append(out, h.event(&views[i]))
	}
	return out
}

func (h *Handler) showEvent(r *http.Request) (reply, error) {
	params, err := parameters(r, "reveal")
	if err != nil {
		return reply{}, err
	}
	reveal, err := params.boolean("reveal")
	if err != nil {
		return reply{}, err
	}
	view, err := h.parts.Spool.Get(r.PathValue("id"), reveal)
	if err != nil {
		return reply{}, err
	}
	out := detailJSON{eventJSON: h.event(&view), Attempts: attempts(view.History)}
	if !reveal {
		return reply{body: out}, nil
	}
	h.sayRevealed(r, view.ID)
	return reply{body: revealedJSON{detailJSON: out, payload: revealed(&view)}}, nil
}

// sayRevealed logs who was shown what is otherwise hidden. It does so at every level: whoever wants fewer lines has not
// asked for fewer witnesses.
func (h *Handler) sayRevealed(r *http.Request, id string) {
	line := slog.NewRecord(time.Now(), slog.LevelInfo, "an event was revealed", 0)
	line.AddAttrs(slog.String("event_id", id), slog.String("remote", r.RemoteAddr))
	_ = h.parts.Logger.Handler().Handle(r.Context(), line)
}

func (h *Handler) retryEvent(r *http.Request) (reply, error) {
	id := r.PathValue("id")
	if err := h.parts.Spool.Retry(r.Context(), id); err != nil {
		return reply{}, err
	}
	h.parts.Logger.Info("an event was retried by hand", "event_id", id, "remote", r.RemoteAddr)
	view, err := h.parts.Spool.Get(id, false)
	if err != nil {
		return reply{}, err
	}
	return reply{body: h.event(&view)}, nil
}

func (h *Handler) deleteEvent(r *http.Request) (reply, error) {
	id := r.PathValue("id")
	if err := h.parts.Spool.Delete(r.Context(), id); err != nil {
		return reply{}, err
	}
	h.parts.Logger.Info("an event was deleted by hand", "event_id", id, "remote", r.RemoteAddr)
	return reply{body: struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}{id, true}}, nil
}
