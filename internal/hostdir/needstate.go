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

// NeedStatus is the status of a need on a host, such as fulfilled or denied.
type NeedStatus string

const (
	NeedFulfilled NeedStatus = "fulfilled"
	NeedWaiting   NeedStatus = "waiting" // will be requested again at Next
	NeedDenied    NeedStatus = "denied"  // will be requested again at Next, an hour or more later
	NeedInvalid   NeedStatus = "invalid" // refused by every provider as invalid; not requested until the need or the manifest changes
	NeedBlocked   NeedStatus = "blocked" // waits for another need, on which it depends
)

// Well reports whether a need requires no attention, because it is fulfilled and the units that use
// its files were restarted. The caller passes the error that is recorded for the need, or nil.
func (s NeedStatus) Well(e *NeedError) bool { return s == NeedFulfilled && e == nil }

// Lasting reports whether the status stays the same until someone changes the cluster, because the
// need was denied or is invalid.
func (s NeedStatus) Lasting() bool { return s == NeedDenied || s == NeedInvalid }

// NeedState is activation's record of a need, as stored in Layout.NeedStateFile. Digest,
// Generation, Fulfilled and Expires always describe the delivered files, even if a later attempt to
// replace them has failed.
type NeedState struct {
	State              NeedStatus    `json:"state"`    // empty before the first request
	Attempts           int           `json:"attempts"` // attempts in the current or last series
	Total              int           `json:"total"`    // attempts in all series
	LastAttempt        unixtime.Time `json:"lastAttempt"`
	Next               unixtime.Time `json:"next"`                   // time of the next attempt
	NotBefore          unixtime.Time `json:"notBefore,omitzero"`     // earliest next attempt, as requested by the provider
	StateSince         unixtime.Time `json:"stateSince"`             // time since which State has its value
	Provider           string        `json:"provider"`               // provider of the last attempt, empty if none was called
	Error              *NeedError    `json:"error,omitempty"`        // error of the last attempt
	InvalidInRow       int           `json:"invalidInRow,omitempty"` // number of successive providers that refused the request as invalid
	Digest             string        `json:"digest"`                 // digest of the need
	Generation         int           `json:"generation"`
	Fulfilled          unixtime.Time `json:"fulfilled"`
	Expires            unixtime.Time `json:"expires"`
	Manifest           string        `json:"manifest"`           // digest of the manifest in force at the last attempt
	NotifiedGeneration int           `json:"notifiedGeneration"` // newest gen-N of which the units in onChange were notified
	Answers            int           `json:"answers"`            // number of answers received
	Rotation           int64         `json:"rotation"`           // ID of the refetch request that the last attempt served

	// The following fields describe the rotations of the delivered secret. They are zero if it
	// cannot be rotated.
	Rotations     int           `json:"rotations,omitempty"`     // number of rotations
	Rotated       unixtime.Time `json:"rotated,omitzero"`        // time of the last rotation, or of a new secret by a change of the topology
	WantRotation  int           `json:"wantRotation,omitempty"`  // rotation to request, zero for none
	RotateRequest int64         `json:"rotateRequest,omitempty"` // ID of the newest rotation request that was begun
	NotRotated    int           `json:"notRotated,omitempty"`    // newest rotation that a provider refused
}

// RotateFile returns the name of the file that a program creates in the directory Instance.Refetch
// to request a new secret for a need.
func RotateFile(need string) string { return need + ".rotate" }

// NeedError describes a failed attempt to fetch a need. Kind is an error class of package hostapi,
// such as denied.
type NeedError struct {
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// maxNeedState is the maximum size of a record of a need in bytes. It is far above the size of any
// record that activation writes.
const maxNeedState = 1 << 20

// NeedState reads activation's record of the need with this ID. It returns the zero NeedState if
// there is no record, because the need was never requested.
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

// ParseNeedState decodes a NeedState from JSON. It refuses unknown fields.
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

// Usable reports whether the delivered files belong to the need with the given digest and have not
// expired at the time now.
func (s NeedState) Usable(digest string, now time.Time) bool {
	return s.Digest == digest && (s.Expires.IsZero() || now.Before(s.Expires.Time))
}
