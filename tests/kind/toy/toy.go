// Package toy is a kind of need that a test adds to the provider:
//
//	POST /toy/request {"name":"outline"} → {"greeting":"hello outline!"}
package toy

import (
	"context"
	"errors"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
)

// Name is the name of the kind.
const Name = "toy"

// Settings is the kind's section of the settings file.
type Settings struct {
	Mark string `json:"mark" want:"name what a greeting ends with"`
}

// Kind returns the kind with these settings.
func (s *Settings) Kind(server.Process) server.AnyKind { return server.Any(toy{s.Mark}) }

type toy struct{ mark string }

type request struct {
	Name string `json:"name"`
}

// policy is the kind's section of a policy.
type policy struct {
	Word     string `json:"word"`
	requests server.Requests[request]
}

func (toy) Name() string { return Name }

func (toy) Compile(p document.Policy) (*policy, error) {
	var c policy
	err := server.Settings(p, Name, &c)
	if err == nil {
		c.requests, err = server.DecodeGrants(p, Name, func(g document.Grant) (r request, err error) {
			if err = strictjson.Decode(g.Request, &r); err == nil && r.Name == "" {
				err = errors.New("no name")
			}
			return r, err
		})
	}
	return &c, err
}

func (t toy) Answer(_ context.Context, p *policy, c server.Call) (server.Decision, error) {
	greeting := p.Word + " " + p.requests.Of(c).Name + t.mark
	return server.Decision{Answer: hostapi.Answer{Values: map[string]string{"greeting": greeting}}}, nil
}
