package needstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/providers/api"
)

// Status is how a need stands.
type Status string

const (
	Fulfilled Status = "fulfilled"
	Waiting   Status = "waiting" // asked again at Next
	Denied    Status = "denied"  // asked again at Next, an hour or more later
	Invalid   Status = "invalid" // to each provider: not asked until the need or the manifest changes
	Blocked   Status = "blocked" // by a need that comes first
)

// State is what activation knows of a need, on disk as Layout.NeedState. Digest,
// Generation, Fulfilled and Expires are of what is delivered, whatever Status says
// of the attempts to replace it.
type State struct {
	State      Status `json:"state"`
	Attempts   int    `json:"attempts"` // of the present or last effort
	Total      int    `json:"total"`    // of all efforts
	Asked      Time   `json:"asked"`    // last attempt
	Next       Time   `json:"next"`     // attempt
	Since      Time   `json:"since"`    // when State became what it is
	Provider   string `json:"provider"` // of the last attempt, empty when it did not get that far
	Error      *Error `json:"error,omitempty"`
	Invalids   int    `json:"invalids,omitempty"` // providers in a row that found the request invalid
	Digest     string `json:"digest"`
	Generation int    `json:"generation"`
	Fulfilled  Time   `json:"fulfilled"`
	Expires    Time   `json:"expires"`
	Manifest   string `json:"manifest"` // digest of the one in force at the last attempt
	Told       int    `json:"told"`     // newest gen-N that the units of onChange know of
	Answers    int    `json:"answers"`  // times it was fulfilled
	Rotation   int64  `json:"rotation"` // identity of the request to fetch it again that the last attempt serves
}

// Error is why the last attempt failed.
type Error struct {
	Kind    api.ErrorKind `json:"kind"`
	Code    string        `json:"code"`
	Message string        `json:"message"`
}

// Load reads a state; that of a need never asked for is the zero State.
func Load(path string) (State, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	s, err := parse(b)
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Save writes s where Load finds it.
func (s State) Save(path string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return delivery.WriteFile(path, append(b, '\n'), 0o644)
}

func parse(b []byte) (State, error) {
	var s State
	if err := florete.Decode(b, &s); err != nil {
		return State{}, err
	}
	switch s.State {
	case Fulfilled, Waiting, Denied, Invalid, Blocked:
	default:
		return State{}, fmt.Errorf("state %q: not a state of a need", s.State)
	}
	if s.Attempts < 0 || s.Total < 0 || s.Told < 0 || s.Invalids < 0 || s.Answers < 0 {
		return State{}, fmt.Errorf("a count below zero")
	}
	return s, nil
}

// Usable tells whether what is delivered for the need of a digest is good now.
func (s State) Usable(digest string, now time.Time) bool {
	return s.Digest == digest && (s.Expires.IsZero() || now.Before(s.Expires.Time))
}

// become changes the status.
func (s *State) become(status Status, now time.Time) {
	if s.State != status {
		s.State, s.Since = status, At(now)
	}
}
