// Package httpreply contains functions for HTTP servers. They answer requests in JSON, and refuse
// requests from foreign web pages.
package httpreply

import (
	"encoding/json"
	"net/http"
)

// JSON answers an HTTP request with a value encoded as JSON. It sets Cache-Control to no-store,
// unless that header is already set. It panics if the value cannot be encoded.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	Encoded(w, status, b)
}

// Encoded is like JSON, but takes the answer b in encoded form.
func Encoded(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // if the caller is gone, it will repeat the request
}
