package announced

import (
	"io"
	"net/http"
	"time"
)

// Stall is the longest time between two reads of a body, or two writes of an answer.
const Stall = 20 * time.Second

type body struct {
	io.Reader
	*http.ResponseController
	until time.Time
}

// Body returns a reader of a request's body, which may have at most size bytes and take at most the
// time within. It gives up on a caller that stalls.
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

// Answer returns w for an answer that is sent within a time. It gives up on a caller that stalls.
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
	if next := time.Now().Add(Stall); next.Before(until) {
		return next
	}
	return until
}
