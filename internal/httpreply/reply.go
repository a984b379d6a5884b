// Package httpreply contains helpers for HTTP servers: answers in JSON, and the refusal of requests
// from foreign web pages.
package httpreply

import (
	"encoding/json"
	"net/http"
)

// JSON answers an HTTP request with v in JSON. It panics if v cannot be encoded. It sets
// Cache-Control to no-store unless the header is set already.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	Encoded(w, status, b)
}

// Encoded is like JSON for a value b that is already encoded.
func Encoded(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // if the caller is gone, it repeats the request
}
