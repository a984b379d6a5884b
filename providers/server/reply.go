package server

import (
	"fmt"
	"net/http"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/httpreply"
)

// encoded is an answer as JSON, in the bytes that are recorded and sent.
type encoded []byte

// Reply writes the response to a request: a refusal if err is not nil, and the answer otherwise.
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
	w.Header().Set(document.HeaderFormat, document.NewestFormat.String())
	if b, ok := v.(encoded); ok {
		httpreply.Encoded(w, status, b)
	} else {
		httpreply.JSON(w, status, v)
	}
}
