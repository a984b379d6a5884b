package plan

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"

	"florete"
	"florete/nix/compile"
)

// Right is something that someone may do. All that makes access wider is one:
//
//	user/alice             reach       service/wiki     a service allows a principal
//	anyone                 reach       service/wiki     it is public
//	node/laptop            act as      user/alice       a host has another's certificate
//	account www on ursula  act as      service/wiki     the forwarder takes it for one
//	SSH key SHA256:…       enrol as    node/ursula
//	node/forge             provide     cert
//	root CN=… SHA256:…     vouch for   every identity
//	key demo-1:…           sign        every document
type Right struct {
	Who  string `json:"who"`
	May  string `json:"may"`
	What string `json:"what"`
}

func compareRights(a, b Right) int {
	return cmp.Or(cmp.Compare(a.May, b.May), cmp.Compare(a.What, b.What), cmp.Compare(a.Who, b.Who))
}

// delta is the rights that change: on which side each was seen.
type delta struct {
	mu   sync.Mutex
	seen map[Right]side
}

type side int

const (
	before side = 1 << iota
	after
)

func newDelta() *delta { return &delta{seen: map[Right]side{}} }

func (d *delta) note(s side, rights []Right) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range rights {
		d.seen[r] |= s
	}
}

// keep drops rights that a host gives which does not change: a service may run on
// several hosts, and stay reachable when it leaves one.
func (d *delta) keep(docs documents) error {
	var m florete.Manifest
	if err := read(docs[florete.DocManifest], &m); err != nil {
		return err
	}
	rights := append(published(m), trust(m.Trust)...)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range rights {
		delete(d.seen, r)
	}
	return nil
}

func (d *delta) sorted() (opened, closed []Right) {
	opened, closed = []Right{}, []Right{}
	for r, s := range d.seen {
		switch s {
		case after:
			opened = append(opened, r)
		case before:
			closed = append(closed, r)
		}
	}
	slices.SortFunc(opened, compareRights)
	slices.SortFunc(closed, compareRights)
	return opened, closed
}

func (d *delta) public(was, is compile.Topology) {
	for s, t := range map[side]compile.Topology{before: was, after: is} {
		for name, service := range t.Services {
			if service.Visibility == "public" {
				d.note(s, []Right{{"anyone", "reach", "service/" + name}})
			}
		}
	}
}

// host notes what one host's documents grant.
func (d *delta) host(was, is documents, old, now florete.Manifest) error {
	hadCerts, err := certificates(old)
	if err != nil {
		return err
	}
	hasCerts, err := certificates(now)
	if err != nil {
		return err
	}
	for _, v := range []struct {
		side        side
		docs        documents
		m           florete.Manifest
		certs, then map[florete.ID]bool // on this side, on the other
	}{{before, was, old, hadCerts, hasCerts}, {after, is, now, hasCerts, hadCerts}} {
		var policy florete.Policy
		if err := read(v.docs[florete.DocPolicy], &policy); err != nil {
			return fmt.Errorf("policy of %s: %w", v.m.Host, err)
		}
		rights := slices.Concat(published(v.m), trust(v.m.Trust), acting(v.m, v.certs), accounts(v.m, v.then))
		for kind := range policy.Kinds {
			rights = append(rights, Right{"node/" + policy.Host, "provide", kind})
		}
		d.note(v.side, rights)
	}
	return nil
}

// published is who may reach what this host publishes.
func published(m florete.Manifest) (rights []Right) {
	for _, p := range m.Forwarder.Publish {
		for _, a := range p.Allow {
			who := a.ID.Short()
			if a.Fingerprint != "" {
				who += " with certificate " + a.Fingerprint
			}
			rights = append(rights, Right{who, "reach", p.ID.Short()})
		}
	}
	return rights
}

// acting is whose certificates the host has, besides its own.
func acting(m florete.Manifest, certificates map[florete.ID]bool) (rights []Right) {
	for id := range certificates {
		if id != m.Identity.ID {
			rights = append(rights, Right{m.Identity.ID.Short(), "act as", id.Short()})
		}
	}
	return rights
}

// certificates are the identities that a host has certificates for.
func certificates(m florete.Manifest) (map[florete.ID]bool, error) {
	ids := map[florete.ID]bool{}
	for _, n := range m.Needs {
		if n.Kind != "cert" {
			continue
		}
		var request struct {
			ID florete.ID `json:"id"`
		}
		if err := json.Unmarshal(n.Request, &request); err != nil || request.ID.IsZero() {
			return nil, fmt.Errorf("host %s: need %s: a certificate for nobody: %s", m.Host, n.ID, n.Request)
		}
		ids[request.ID] = true
	}
	return ids, nil
}

// accounts is who acts as what on the host, and which key it enrols with. What
// the host had no certificate for before, its own rights tell.
func accounts(m florete.Manifest, had map[florete.ID]bool) (rights []Right) {
	if had[m.Identity.ID] {
		rights = append(rights, Right{"SSH key " + fingerprint(m.Identity.SSHHostKey), "enrol as", m.Identity.ID.Short()})
	}
	for _, c := range m.Forwarder.Callers {
		if !had[c.ID] {
			continue
		}
		for _, user := range c.Users {
			rights = append(rights, Right{"account " + user + " on " + m.Host, "act as", c.ID.Short()})
		}
		for _, uid := range c.UIDs {
			rights = append(rights, Right{fmt.Sprintf("uid %d on %s", uid, m.Host), "act as", c.ID.Short()})
		}
	}
	return rights
}

func trust(t florete.Trust) (rights []Right) {
	for _, root := range t.Roots {
		rights = append(rights, Right{"root " + certificate(root), "vouch for", "every identity"})
	}
	for _, key := range t.Keys {
		rights = append(rights, Right{"key " + key, "sign", "every document"})
	}
	return rights
}

// fingerprint is that of ssh-keygen -l.
func fingerprint(key string) string {
	_, data, _ := strings.Cut(key, " ")
	b, _ := base64.StdEncoding.DecodeString(data)
	sum := sha256.Sum256(b)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// certificate names one by its subject and the digest that openssl x509
// -fingerprint -sha256 prints.
func certificate(text string) string {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		block = &pem.Block{Bytes: []byte(text)}
	}
	sum := sha256.Sum256(block.Bytes)
	name := "SHA256:" + hex.EncodeToString(sum[:])
	if c, err := x509.ParseCertificate(block.Bytes); err == nil {
		return c.Subject.String() + " " + name
	}
	return name
}
