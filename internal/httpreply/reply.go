// Package httpreply has what HTTP servers share: how they answer with JSON, and which requests of
// browsers they refuse.
package httpreply

import (
	"encoding/json"
	"net/http"
)

// JSON answers with v, which is made of what can be encoded. Unless the header Cache-Control is set,
// nobody keeps the answer.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	Encoded(w, status, b)
}

// Encoded is JSON for what is JSON already.
func Encoded(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // a caller that has gone repeats the request
}
