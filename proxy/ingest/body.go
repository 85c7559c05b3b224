package ingest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
)

// trustedLength is how much memory a Content-Length alone gets; more comes once that much has really arrived.
const trustedLength = 64 << 10

// readBody reads the whole body, whatever its framing. Trailers, which come after a chunked one, are not kept.
func (h *Handler) readBody(r *http.Request) ([]byte, *refusal) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > h.maxEventBytes {
		return nil, h.tooLarge()
	}
	body, p := h.readFramed(r)
	if p == nil {
		// Nothing is left of it. A body that is still open would be read again by net/http, to find that out.
		_ = r.Body.Close()
	}
	return body, p
}

// readFramed reads by Content-Length where there is one, else by chunks.
func (h *Handler) readFramed(r *http.Request) ([]byte, *refusal) {
	if r.ContentLength < 0 {
		return h.readChunked(r.Body)
	}
	body := make([]byte, min(r.ContentLength, trustedLength))
	_, err := io.ReadFull(r.Body, body)
	if err == nil && r.ContentLength > trustedLength {
		body = slices.Grow(body, int(r.ContentLength)-len(body))[:r.ContentLength]
		_, err = io.ReadFull(r.Body, body[trustedLength:])
	}
	if err != nil {
		return nil, brokenBody(err)
	}
	return body, nil
}

func (h *Handler) readChunked(from io.Reader) ([]byte, *refusal) {
	body, err := io.ReadAll(io.LimitReader(from, h.maxEventBytes+1))
	if int64(len(body)) > h.maxEventBytes {
		return nil, h.tooLarge()
	}
	if err != nil {
		return nil, brokenBody(err)
	}
	return slices.Clip(body), nil
}

func (h *Handler) tooLarge() *refusal {
	return &refusal{Status: http.StatusRequestEntityTooLarge, Slug: slugTooLarge, Title: "The body is too large",
		Detail: fmt.Sprintf("The body is over the limit of %d bytes. An operator can raise spool.max_event_bytes.", h.maxEventBytes)}
}

// brokenBody is for a body that ended early or is not framed right. The client has most often left.
func brokenBody(err error) *refusal {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &refusal{Status: http.StatusRequestTimeout, Slug: slugBrokenBody, Title: "The body came too slowly",
			Detail: "The body did not arrive in time. Nothing was stored."}
	}
	return &refusal{Status: http.StatusBadRequest, Slug: slugBrokenBody, Title: "The body did not arrive",
		Detail: "The body ended before its announced length, or its chunks are not valid. Nothing was stored."}
}
