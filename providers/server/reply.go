package server

import (
	"fmt"
	"net/http"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/httpreply"
)

// encoded is an answer in JSON. The same bytes are recorded and sent.
type encoded []byte

// Reply writes the JSON response to a request: the answer or, if err is not nil, the error. An err
// that is not an *hostapi.Error is sent as an internal error, without its text.
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
