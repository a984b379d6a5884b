package announced

import (
	"io"
	"net/http"
	"time"
)

// Stall is the longest pause between two reads of a request's body, or between two writes of an
// answer.
const Stall = 20 * time.Second

type body struct {
	io.Reader
	*http.ResponseController
	until time.Time
}

// Body returns a reader for the body of a request. Reading fails if the body is larger than size
// bytes, if the whole body does not arrive within the given duration, or if the client sends
// nothing for the duration Stall.
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

// Answer returns a ResponseWriter that limits how long sending a response takes. Writing fails if
// the whole response is not sent within the given duration, or if the client reads nothing for the
// duration Stall.
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
