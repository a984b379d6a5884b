package token

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/outside"
)

const (
	// issuerRest is the shortest time between two requests for an issuer's keys, because callers
	// can present tokens with arbitrary key IDs.
	issuerRest = 10 * time.Second

	// issuerStale is the age at which keys are read again, because an issuer may have withdrawn
	// one.
	issuerStale = time.Hour
)

// issuers caches the keys of external issuers.
type issuers struct {
	mu  sync.Mutex
	all map[source]*issuerKeys
}

// source consists of an issuer and the places from which its keys are read.
type source struct{ issuer, discovery, jwks string }

// issuerKeys contains the keys of an external issuer. Only one request for them is in progress at a
// time. Other callers wait for its result.
type issuerKeys struct {
	source
	client *http.Client
	turn   chan struct{} // holds one while nobody reads or fetches the fields below

	known []jose.JSONWebKey
	asked time.Time // when they were requested last
	since time.Time // when they were received last
	err   error     // of that request
}

// algorithmNames returns the algorithms in the form of an oidc.Config.
func algorithmNames() (names []string) {
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return names
}

// keys returns the keys of an issuer. There may be none yet.
func (i *issuers) keys(issuer Issuer) (*issuerKeys, error) {
	at := source{issuer.Issuer, issuer.Discovery, issuer.JWKS}
	i.mu.Lock()
	defer i.mu.Unlock()
	if k := i.all[at]; k != nil {
		return k, nil
	}
	addresses := []string{issuer.JWKS}
	if issuer.JWKS == "" {
		addresses = []string{issuer.Issuer}
		if issuer.Discovery != "" {
			addresses = append(addresses, issuer.Discovery)
		}
	}
	client, err := outside.Config{}.Client(addresses...)
	if err != nil {
		return nil, err
	}
	k := &issuerKeys{source: at, client: client, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	if i.all == nil {
		i.all = map[source]*issuerKeys{}
	}
	i.all[at] = k
	return k, nil
}

// verify verifies a token of an external issuer. The caller who presents the token reads the error,
// so the error contains nothing from the issuer's response. The response is logged.
func (i *issuers) verify(ctx context.Context, name string, issuer Issuer, token string, log *slog.Logger) (*oidc.IDToken, error) {
	k, err := i.keys(issuer)
	if err != nil {
		return nil, err
	}
	// Audiences are several, and compared by the caller.
	set := &keySet{keys: k, log: log.With("issuer", name)}
	v, err := oidc.NewVerifier(issuer.Issuer, set, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithmNames()}).Verify(ctx, token)
	if set.failed != nil {
		return nil, hostapi.Errorf(hostapi.CodeUnavailable, "issuer %s: its keys cannot be read: the log of this provider has why", name).After(issuerRest)
	}
	if err != nil {
		return nil, malformed("subject_token of issuer %s: %v", name, err)
	}
	return v, nil
}

// keySet verifies the signature of one token.
type keySet struct {
	keys   *issuerKeys
	log    *slog.Logger
	failed error // why there are no keys
}

var errNoKey = errors.New("signed by none of its keys")

// VerifySignature implements oidc.KeySet.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	parsed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil || len(parsed.Signatures) != 1 {
		return nil, errNoKey
	}
	kid := parsed.Signatures[0].Header.KeyID
	for _, older := range []time.Duration{issuerStale, issuerRest} {
		known, err := s.keys.newer(ctx, older, s.log)
		if err != nil {
			s.failed = err
			return nil, err
		}
		for _, key := range known {
			if kid == "" || key.KeyID == kid {
				if payload, err := parsed.Verify(&key); err == nil {
					return payload, nil
				}
			}
		}
	}
	return nil, errNoKey
}

// newer returns the keys. If they are older than the duration given by ago, newer requests them
// again.
func (k *issuerKeys) newer(ctx context.Context, ago time.Duration, log *slog.Logger) ([]jose.JSONWebKey, error) {
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { k.turn <- struct{}{} }()
	if now := time.Now(); now.Sub(k.asked) >= issuerRest && now.Sub(k.since) >= ago {
		var fetched []jose.JSONWebKey
		// Others wait for it: it does not end with this request.
		if fetched, k.err = k.fetch(context.WithoutCancel(ctx)); k.err == nil {
			k.known, k.since = fetched, time.Now()
		} else {
			log.Warn("the keys of an issuer cannot be read", "error", k.err)
		}
		k.asked = time.Now()
	}
	if len(k.known) == 0 {
		return nil, cmp.Or(k.err, errors.New("it has no keys"))
	}
	return k.known, nil
}

// fetch requests the keys from the address in the discovery document.
func (k *issuerKeys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	at := k.jwks
	if at == "" {
		var found struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		below := strings.TrimSuffix(cmp.Or(k.discovery, k.issuer), "/") + "/.well-known/openid-configuration"
		if err := k.get(ctx, below, &found); err != nil {
			return nil, err
		}
		if found.Issuer != k.issuer {
			return nil, fmt.Errorf("%s is of issuer %.200q, want %s", below, found.Issuer, k.issuer)
		}
		at = found.JWKS
	}
	var set jose.JSONWebKeySet
	err := k.get(ctx, at, &set)
	return set.Keys, err
}

// get reads a JSON document.
func (k *issuerKeys) get(ctx context.Context, at string, to any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%.200q: %s", at, resp.Status)
	}
	if json.NewDecoder(resp.Body).Decode(to) != nil {
		return fmt.Errorf("%.200q is not the JSON of an issuer", at)
	}
	return nil
}
