package hostdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// NeedStatus is how a need stands.
type NeedStatus string

const (
	NeedFulfilled NeedStatus = "fulfilled"
	NeedWaiting   NeedStatus = "waiting" // requested again at Next
	NeedDenied    NeedStatus = "denied"  // requested again at Next, an hour or more later
	NeedInvalid   NeedStatus = "invalid" // to each provider: no request until the need or the manifest changes
	NeedBlocked   NeedStatus = "blocked" // by a need that it depends on
)

// Well reports whether the need is fulfilled, and each unit of it has what was delivered.
func (s NeedStatus) Well(e *NeedError) bool { return s == NeedFulfilled && e == nil }

// Lasting reports whether the need stays as it is until somebody changes something elsewhere.
func (s NeedStatus) Lasting() bool { return s == NeedDenied || s == NeedInvalid }

// NeedState is what activation knows of a need, on disk as Layout.NeedStateFile. Digest,
// Generation, Fulfilled and Expires are of what is delivered, whatever State is of the
// attempts to replace it.
type NeedState struct {
	State              NeedStatus    `json:"state"`    // empty before the first request
	Attempts           int           `json:"attempts"` // of the present or last effort
	Total              int           `json:"total"`    // of all efforts
	LastAttempt        unixtime.Time `json:"lastAttempt"`
	Next               unixtime.Time `json:"next"`                   // attempt
	NotBefore          unixtime.Time `json:"notBefore,omitzero"`     // no attempt, as the provider of the last one requested
	StateSince         unixtime.Time `json:"stateSince"`             // when State became what it is
	Provider           string        `json:"provider"`               // of the last attempt, empty when it did not get that far
	Error              *NeedError    `json:"error,omitempty"`        // of the last attempt
	InvalidInRow       int           `json:"invalidInRow,omitempty"` // providers in a row that found the request invalid
	Digest             string        `json:"digest"`                 // of the need
	Generation         int           `json:"generation"`
	Fulfilled          unixtime.Time `json:"fulfilled"`
	Expires            unixtime.Time `json:"expires"`
	Manifest           string        `json:"manifest"`           // digest of the one in force at the last attempt
	NotifiedGeneration int           `json:"notifiedGeneration"` // newest gen-N that the units of onChange were notified of
	Answers            int           `json:"answers"`            // times it was fulfilled
	Rotation           int64         `json:"rotation"`           // identity of the request to fetch it again that the last attempt serves

	// Of the secret that is delivered, where the provider has one that can be rotated.
	Rotations     int           `json:"rotations,omitempty"`     // how often it was rotated
	Rotated       unixtime.Time `json:"rotated,omitzero"`        // when it was, or became another by the topology
	WantRotation  int           `json:"wantRotation,omitempty"`  // the rotation to request, zero for none
	RotateRequest int64         `json:"rotateRequest,omitempty"` // identity of the newest request to rotate it that was begun
	NotRotated    int           `json:"notRotated,omitempty"`    // the newest rotation that a provider refused
}

// RotateFile is the file, among the requests to activation, that requests another secret for
// a need. A request to fetch it again has the need's own name.
func RotateFile(need string) string { return need + ".rotate" }

// NeedError is why the last attempt failed; Kind is one of the error kinds of
// internal/hostapi.
type NeedError struct {
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// maxNeedState is far above what activation writes.
const maxNeedState = 1 << 20

// NeedState reads the state of a need; that of one never requested is the zero NeedState.
func (l Layout) NeedState(id string) (NeedState, error) {
	path := l.NeedStateFile(id)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return NeedState{}, nil
	}
	if err != nil {
		return NeedState{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNeedState))
	if err != nil {
		return NeedState{}, err
	}
	s, err := ParseNeedState(b)
	if err != nil {
		return NeedState{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseNeedState decodes a state, strictly.
func ParseNeedState(b []byte) (NeedState, error) {
	var s NeedState
	if err := strictjson.Decode(b, &s); err != nil {
		return NeedState{}, err
	}
	switch s.State {
	case NeedFulfilled, NeedWaiting, NeedDenied, NeedInvalid, NeedBlocked:
	default:
		return NeedState{}, fmt.Errorf("state %q: not a state of a need", s.State)
	}
	if min(s.Attempts, s.Total, s.NotifiedGeneration, s.InvalidInRow, s.Answers, s.Rotations, s.WantRotation, s.NotRotated) < 0 {
		return NeedState{}, errors.New("a count below zero")
	}
	return s, nil
}

// Usable reports whether what is delivered for the need of a digest is good now.
func (s NeedState) Usable(digest string, now time.Time) bool {
	return s.Digest == digest && (s.Expires.IsZero() || now.Before(s.Expires.Time))
}
