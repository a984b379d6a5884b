// Package httpreply contains functions for HTTP servers. They answer requests in JSON, and refuse
// requests from foreign web pages.
package httpreply

import (
	"encoding/json"
	"net/http"
)

// JSON answers an HTTP request with the value v, encoded in JSON. It panics if v cannot be encoded.
// It sets the header Cache-Control to no-store, unless this header is already set.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	Encoded(w, status, b)
}

// Encoded answers an HTTP request like JSON, with a value b that is already encoded.
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
