package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// encoded is an answer as JSON, which is what is recorded of it and what the caller gets.
type encoded []byte

// Reply writes an answer or, when err is not nil, a refusal.
func Reply(w http.ResponseWriter, answer any, err error) {
	if err == nil {
		write(w, http.StatusOK, answer)
		return
	}
	e := hostapi.AsError(err)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(e.RetryAfter))
	}
	write(w, e.Status(), e)
}

func write(w http.ResponseWriter, status int, v any) {
	b, ok := v.(encoded)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			panic(err) // strings and integers
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(document.HeaderFormat, document.NewestFormat.String())
	w.WriteHeader(status)
	w.Write(b) // without it the caller repeats the request
}
