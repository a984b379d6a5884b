package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// externalPrefix is the beginning of the keys of sealed records about clients at an external
// issuer. The client's name follows it.
const externalPrefix = "oidc/external/"

const (
	formerLives = time.Hour   // time for which a former client works beside the next one
	endsEvery   = time.Minute // interval at which former clients are ended
)

// gone lists the status codes of responses after which it is useless to try again to delete the
// client.
var gone = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented}

// external is the record of a service's clients at an external issuer.
type external struct {
	Mark    string       `json:"mark"`    // mark of a client that is being registered; empty once it is stored
	Clients []registered `json:"clients"` // the one in use, then former ones

	modified int64
}

type registered struct {
	made
	Version    string `json:"version"`              // digest of the request
	Credential string `json:"credential,omitempty"` // digest of the parts on which the secret depends
	Ends       int64  `json:"ends"`                 // Unix seconds; 0 for the one in use
}

func (p *Provider) readExternal(ctx context.Context, name string) (e external, err error) {
	e.modified, err = p.cfg.Key.Load(ctx, p.cfg.Store, externalPrefix+name, &e)
	return e, err
}

// writeExternal stores the record, or deletes it if it has no clients.
func (p *Provider) writeExternal(ctx context.Context, name string, e external) (external, error) {
	key := externalPrefix + name
	op := store.Delete(key)
	if e.Mark != "" || len(e.Clients) > 0 {
		var err error
		if op, err = p.cfg.Key.Put(key, e); err != nil {
			return e, err
		}
	}
	modified, err := p.cfg.Store.Commit(ctx, store.Txn{If: []store.Cond{{Key: key, Modified: e.modified}}, Then: []store.Op{op}})
	e.modified = modified
	return e, err
}

// external returns the client of a service at the issuer in the policy. If there is no such client,
// or if it differs from what the policy grants, external registers or updates the client.
func (p *Provider) external(ctx context.Context, c server.Call, policy *Policy, want registration) (registered, error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	select {
	case p.registering <- struct{}{}:
		defer func() { <-p.registering }()
	case <-ctx.Done():
		return registered{}, hostapi.Errorf(hostapi.CodeBusy, "other clients are being registered")
	}
	name := want.client()
	e, err := p.readExternal(ctx, name)
	if err != nil {
		return registered{}, err
	}
	generation, rotation := policy.generations[want.Service], want.rotation().Number
	version, credential := policy.version(name, generation, rotation), policy.credential(name, generation, rotation)
	at, err := p.registrar(policy.registrar, policy)
	if err != nil {
		return registered{}, err
	}
	if len(e.Clients) > 0 {
		c := &e.Clients[0]
		if c.Version == version {
			return *c, nil
		}
		if c.Credential == credential {
			err := at.update(ctx, name, c.made, policy.clients[name])
			var refused *refusedError
			switch {
			case err == nil:
				c.Version = version
				e, err = p.writeExternal(ctx, name, e)
				return e.Clients[0], err
			case errors.As(err, &refused) && refused.status == http.StatusNotFound, errors.Is(err, errors.ErrUnsupported):
			default:
				return registered{}, unavailable(policy, err)
			}
		}
	}
	if _, again := at.pending(name, e.Mark); e.Mark == "" || !again {
		if e.Mark != "" {
			p.log.Warn("a client may be left at the issuer that no host has: delete it there", "issuer", policy.issuer, "client_name", name, "software_version", e.Mark)
		}
		e.Mark = random()
		if e, err = p.writeExternal(ctx, name, e); err != nil {
			return registered{}, err
		}
	}
	fresh, err := at.register(ctx, name, e.Mark, policy.clients[name], e.Clients)
	if err != nil {
		return registered{}, unavailable(policy, err)
	}
	for i := range e.Clients {
		if e.Clients[i].Ends == 0 {
			e.Clients[i].Ends = c.Now.Add(formerLives).Unix()
		}
	}
	e.Mark, e.Clients = "", slices.Insert(e.Clients, 0, registered{made: fresh, Version: version, Credential: credential})
	if e, err = p.writeExternal(ctx, name, e); err != nil {
		return registered{}, errors.Join(err, at.end(ctx, fresh, false))
	}
	return e.Clients[0], nil
}

func random() string { return strings.ToLower(rand.Text()) }

func unavailable(policy *Policy, err error) error {
	return hostapi.Errorf(hostapi.CodeUnavailable, "registering at %s: %v", policy.registration, err)
}

// version returns a digest of everything that a client's registration contains.
func (p *Policy) version(name string, generation, rotation int) string {
	of := []any{p.registration, p.clients[name], generation, rotation}
	if p.registrar != "" {
		of = append(of, p.registrar)
	}
	return digest(of)
}

// credential returns a digest of everything on which the client's secret depends.
func (p *Policy) credential(name string, generation, rotation int) string {
	return digest([]any{p.registrar, p.registration, p.clients[name].Public, generation, rotation})
}

func digest(of []any) string {
	b := strictjson.Encode(of)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// endExternal regularly ends two types of clients, until ctx ends: former clients whose time is
// over, and clients that no policy names.
func (p *Provider) endExternal(ctx context.Context) {
	sweep := func(ctx context.Context) error { return p.sweepExternal(ctx, time.Now()) }
	journal.Every(ctx, endsEvery, p.log, sweep, "clients whose time is over stay until the next try")
}

func (p *Provider) sweepExternal(ctx context.Context, now time.Time) error {
	policy := p.cfg.Policy()
	if policy == nil {
		return nil
	}
	var failed []error
	for entry, err := range store.All(ctx, p.cfg.Store, externalPrefix, "", store.MaxOps) {
		if err != nil {
			return err
		}
		failed = append(failed, p.endOver(ctx, now, policy, strings.TrimPrefix(entry.Key, externalPrefix)))
	}
	return errors.Join(failed...)
}

// endOver ends the former clients with one name whose time is over.
func (p *Provider) endOver(ctx context.Context, now time.Time, policy *Policy, name string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	select {
	case p.registering <- struct{}{}:
		defer func() { <-p.registering }()
	case <-ctx.Done():
		return nil // the next time
	}
	e, err := p.readExternal(ctx, name)
	if err != nil {
		return err
	}
	want, isNamed := policy.clients[name]
	isNamed = isNamed && !policy.ends(p.cfg.Revoked(), want.Service)
	if !isNamed && e.Mark != "" {
		at, err := p.registrar(policy.registrar, policy)
		if err != nil {
			return err
		}
		if left, ok := at.pending(name, e.Mark); ok {
			e.Clients = append(e.Clients, registered{made: left})
		}
	}
	stays := func(c registered) bool { return isNamed && (c.Ends == 0 || now.Unix() < c.Ends) }
	var failed error
	kept := slices.DeleteFunc(slices.Clone(e.Clients), func(c registered) bool {
		if stays(c) {
			return false
		}
		whole := !slices.ContainsFunc(e.Clients, func(o registered) bool { return o.ID == c.ID && stays(o) })
		at, err := p.registrar(c.Registrar, policy)
		if err == nil {
			err = at.end(ctx, c.made, whole)
		}
		var refused *refusedError
		switch {
		case err == nil:
			p.log.Info("a client has ended at the issuer", "client", c.ID, "name", name)
		case errors.As(err, &refused) && slices.Contains(gone, refused.status):
			p.log.Warn("the issuer does not delete a client: if it is there, delete it by hand", "client", c.ID, "name", name, "error", err)
		default:
			failed = err
			return false
		}
		return true
	})
	if len(kept) == len(e.Clients) && (isNamed || e.Mark == "") {
		return failed
	}
	e.Clients = kept
	if !isNamed {
		e.Mark = ""
	}
	_, err = p.writeExternal(ctx, name, e)
	return errors.Join(failed, err)
}
