// Package stall sends and receives bodies of HTTP, and gives up on a peer that stalls.
package stall

import (
	"io"
	"net/http"
	"time"
)

// Limit is how long a peer may take for the next bytes.
const Limit = 20 * time.Second

type body struct {
	io.Reader
	*http.ResponseController
	until time.Time
}

// Body is what a caller sends, of at most so many bytes and within so long.
func Body(w http.ResponseWriter, r *http.Request, size int64, within time.Duration) io.Reader {
	return body{http.MaxBytesReader(w, r.Body, size), http.NewResponseController(w), time.Now().Add(within)}
}

func (b body) Read(p []byte) (int, error) {
	if err := b.SetReadDeadline(earlier(b.until)); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

type answer struct {
	http.ResponseWriter
	*http.ResponseController
	until time.Time
}

// Answer is w for an answer that is sent within so long.
func Answer(w http.ResponseWriter, within time.Duration) http.ResponseWriter {
	return answer{w, http.NewResponseController(w), time.Now().Add(within)}
}

func (a answer) Write(p []byte) (int, error) {
	if err := a.SetWriteDeadline(earlier(a.until)); err != nil {
		return 0, err
	}
	return a.ResponseWriter.Write(p)
}

func earlier(until time.Time) time.Time {
	if next := time.Now().Add(Limit); next.Before(until) {
		return next
	}
	return until
}
