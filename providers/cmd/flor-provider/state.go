package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
)

// state describes where this host's processes keep their state: in a file for each process, or in
// trees of the shared store that the policy names.
type state struct {
	*settings.Settings
	policy   document.Policy
	serial   int64 // serial of the policy
	instance hostdir.Instance
}

func (p *process) state() state {
	policy, serial := p.policies.Versioned()
	return state{p.Settings, policy, serial, p.instance}
}

// openTree opens the tree of a kind in the shared store that the policy names.
func (s state) openTree(kind string) (store.Store, error) {
	shared := s.policy.Store
	if shared.Kind != "etcd" {
		return nil, fmt.Errorf("policy of %s: store of kind %q: this Florete knows etcd: upgrade it", s.policy.Host, shared.Kind)
	}
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	return etcd.Open(etcd.Config{Endpoints: shared.Endpoints, TLS: config, Tree: s.policy.TrustDomain + "/" + kind})
}

// tls returns the client configuration for connections to members of the shared store. The members
// and this client have certificates of the operator's CA for the store. The certificates are read
// again for each connection.
func (s state) tls() (*tls.Config, error) {
	file := s.certificates()
	pem, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("store: %w: where its CA is, run: florctl store issue", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("store: %s: no certificate", file("ca.crt"))
	}
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		key, err := secretfile.ReadFile(file("client.key"))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		crt, err := os.ReadFile(file("client.crt"))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		c, err := tls.X509KeyPair(crt, key)
		return &c, err
	}
	if _, err := own(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, GetClientCertificate: own}, nil
}

// certificates returns a function that returns the path of a file with a certificate or key of the
// shared store. The files are the credentials of the unit, or the sources of these credentials,
// which root can read.
func (s state) certificates() func(name string) string {
	dir := s.Store
	if dir == "" {
		dir = filepath.Join(s.instance.Etc(), "store")
	}
	if loaded := os.Getenv("CREDENTIALS_DIRECTORY"); loaded != "" {
		if _, err := os.Stat(filepath.Join(loaded, "store-client.key")); err == nil {
			return func(name string) string { return filepath.Join(loaded, "store-"+name) }
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

// stateOf returns the state of this host for a command. If no policy is in force, the state must be
// in files.
func (t *target) stateOf(s *settings.Settings) (state, error) {
	doc, err := document.Read(s.Policy(), document.DocPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return state{s, doc.Policy(), doc.Envelope.Serial, t.Instance}, err
}

// kindState is the opened state of the process for one kind of need.
type kindState struct {
	store.Store
	kind string
}

// existing opens the states of all processes that have run here.
func (t *target) existing(ctx context.Context, s *settings.Settings) (all []kindState, err error) {
	st, err := t.stateOf(s)
	if err != nil {
		return nil, err
	}
	var found []string
	if st.policy.Store != nil {
		found = slices.Sorted(maps.Keys(st.policy.Provider))
	} else {
		// A command does not make a state file, because the account of the process must own it.
		files, err := filepath.Glob(storePath(s.Dir("*")))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no process has run yet, want one: systemctl start %s", storePath(s.Dir("*")), t.Unit("provider-cert.service"))
	}
	for _, kind := range found {
		db, err := st.open(ctx, kind)
		if err != nil {
			for _, opened := range all {
				opened.Close()
			}
			return nil, err
		}
		all = append(all, kindState{db, kind})
	}
	return all, nil
}

// existingOf opens the state of a kind's process, if the process has run here.
func (t *target) existingOf(ctx context.Context, s *settings.Settings, kind string) (store.Store, error) {
	st, err := t.stateOf(s)
	if err != nil {
		return nil, err
	}
	if st.policy.Store == nil {
		// Only the process makes the file, because the process's account must own it.
		if _, err := os.Stat(storePath(s.Dir(kind))); err != nil {
			if err := st.gone(kind); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("no process has run yet (%w), want one: systemctl start %s", err, t.Unit("provider-"+kind+".service"))
		}
	}
	return st.open(ctx, kind)
}
