// Package own serves kinds of need that a topology itself defines. For each new request the
// provider runs an executable, or calls an HTTP service, which the topology names in
// providers.<kind>.
//
//	standard input, or POST:  {"key":"9f86…","caller":"spiffe://…","service":"spiffe://…","need":"mailbox-wiki-mail",
//	                           "request":{"address":"wiki@example.org"},"generation":1,"rotation":0,"secret":"…"}
//	standard output, or 200:  {"values":{"password":"…"}}
//
// The contract for executables and services is docs/how-to/issue-your-own-kind.md. The server does
// the rest as for any kind: it authorizes requests, repeats answers, seals and audits them, and
// rotates secrets.
package own

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These constants limit one call of the executable or the service. Their total time is shorter than
// the time that a host waits for its answer.
const (
	deadline  = 20 * time.Second
	patience  = 5 * time.Second // for other runs of the executable
	maxAnswer = 64 << 10        // bytes
)

// Settings implements server.Section for a kind of need that the topology defines. Such a kind has
// no settings in the settings file.
type Settings struct{ kind string }

// Section returns the settings of the kind with the given name.
func Section(kind string) *Settings { return &Settings{kind} }

// State returns the keys in the state store that belong in a backup: the numbers of secret
// rotations.
func (s *Settings) State() server.State {
	return server.State{Remembered: []string{s.kind + rotations}, Secrets: true}
}

// Kind returns the kind of need that runs in the given process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{Name: s.kind, Dir: filepath.Join(p.Dir, "work"), Store: p.Store, Key: p.Key, Logger: p.Logger}))
}

// Config configures a Kind. All fields are required.
type Config struct {
	Name   string // name of the kind
	Dir    string // working directory of the executable; created if it is missing
	Store  store.Store
	Key    *sealedstore.Key
	Logger *slog.Logger

	Deadline time.Duration // longest duration of a call; 20 seconds unless set
}

// Kind implements one kind of need that the topology defines.
type Kind struct {
	Config
	turn chan struct{} // of the executable, which runs once at a time
}

var _ server.Rotator[*Policy] = (*Kind)(nil)

// New returns a Kind with a configuration.
func New(c Config) *Kind {
	c.Deadline = cmp.Or(c.Deadline, deadline)
	return &Kind{c, make(chan struct{}, 1)}
}

// Name returns the name of this kind of need.
func (k *Kind) Name() string { return k.Config.Name }

// call is the JSON that the executable reads.
type call struct {
	Key        string            `json:"key"`
	Caller     spiffe.ID         `json:"caller"`
	Service    spiffe.ID         `json:"service"`
	Need       string            `json:"need"`
	Request    json.RawMessage   `json:"request"`
	Generation int               `json:"generation"`
	Rotation   int               `json:"rotation"`
	Secret     string            `json:"secret"`
	Last       map[string]string `json:"last,omitempty"`
}

// Answer calls the executable or the service and returns its values.
func (k *Kind) Answer(ctx context.Context, policy *Policy, c server.Call) (server.Decision, error) {
	request := policy.requests.Of(c)
	at := k.place(request, c)
	have, modified, err := k.rotation(ctx, at)
	if err != nil {
		return server.Decision{}, err
	}
	last, err := c.Last()
	if err != nil {
		return server.Decision{}, err
	}
	key, err := c.Request.Key(c.Caller)
	if err != nil {
		return server.Decision{}, err
	}
	delete(last.Values, hostapi.ValueRotation)
	in := call{
		Key: key, Caller: c.Caller, Service: request.Service, Need: c.Grant.Need, Request: request.Request,
		Generation: c.Grant.Generation, Rotation: c.Rotation.Number, Secret: k.secret(request, c), Last: last.Values,
	}
	answer, err := k.call(ctx, policy, in)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{
		Answer: answer,
		If:     []store.Cond{{Key: at, Modified: modified}},
		Detail: map[string]string{"service": request.Service.Short(), "generation": strconv.Itoa(c.Grant.Generation)},
	}
	if answer.Expires != 0 { // who requests again after half of the time gets another
		until := time.Unix(answer.Expires, 0)
		d.Repeated = until.Add(-until.Sub(c.Now) / 2)
	}
	if c.Rotation.Number != have.Number {
		b, err := json.Marshal(c.Rotation)
		if err != nil {
			return server.Decision{}, err
		}
		d.Then = []store.Op{store.Put(at, b)}
	}
	return d, nil
}

// secret derives the secret of a call, so that the same request has the same secret. If the
// provider crashes after the executable has run and before the answer is stored, the secret is
// therefore not lost.
func (k *Kind) secret(r Request, c server.Call) string {
	purpose := fmt.Sprintf("florete own secret v1\n%s\n%s\n%s\n%d\n%d", k.Name(), r.Service, c.Grant.Need, c.Grant.Generation, c.Rotation.Number)
	return base64.RawURLEncoding.EncodeToString(k.Key.Derive(purpose, 32))
}

// rotations is a part of the keys of rotations. It follows the name of the kind.
const rotations = "/rotation/"

// place returns the key of the rotation of a need's secret. The key contains the service and not
// its host, so that a former secret does not become valid again when the service moves.
func (k *Kind) place(r Request, c server.Call) string {
	return k.Name() + rotations + r.Service.Short() + "/" + c.Grant.Need
}

// rotation returns the rotation that is stored under a key, and the revision that wrote it.
func (k *Kind) rotation(ctx context.Context, at string) (r server.Rotation, modified int64, err error) {
	modified, err = store.Load(ctx, k.Store, at, &r)
	return r, modified, err
}

// Rotation returns the number and time of the last rotation of a need's secret. If the request asks
// for a new rotation and several hosts have the secret, Rotation returns an error, because the
// other hosts would keep the old secret.
func (k *Kind) Rotation(ctx context.Context, policy *Policy, c server.Call) (server.Rotation, error) {
	request := policy.requests.Of(c)
	at := k.place(request, c)
	if hosts := policy.hosts[at]; c.Request.Rotation != 0 && hosts > 1 {
		return server.Rotation{}, hostapi.Errorf(hostapi.CodeRotation,
			"need %q: %d hosts have the secret of %s: raise its generation in the topology, which has all of them fetch another", c.Request.Need, hosts, request.Service)
	}
	r, _, err := k.rotation(ctx, at)
	return r, err
}
