package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// refuse performs forbidden actions, and checks that the cluster refuses each of them.
func (s *demo) refuse(ctx context.Context) error {
	s.heading("what nobody may do is refused")
	_, err := s.curlSOCKS(ctx, "raishan", "user/bob", "wiki")
	s.refused("bob to wiki", err, "SOCKS5")

	bob, err := s.hosts["raishan"].SVID("cert-user-bob")
	if err != nil {
		return err
	}
	s.refused("bob to wiki, past his own forwarder", s.knock(ctx, "wiki", bob), "Application error")

	raishan, err := s.client("raishan", "config")
	if err != nil {
		return err
	}
	nosy := *raishan
	nosy.Node = s.hosts["ursula"].Manifest.Identity.ID
	_, err = nosy.Artifact(ctx)
	s.refused("raishan asks for ursula's documents", err, string(hostapi.Denied))

	ursula, err := s.client("ursula", "oidc")
	if err != nil {
		return err
	}
	r := hostapi.Request{Need: "oidc-wiki", Serial: s.serial, Generation: 1, Body: json.RawMessage(`{"service":"spiffe://demo.flor/service/wiki","redirectURIs":[]}`)}
	_, err = ursula.Do(ctx, hostapi.Path("oidc"), r)
	s.refused("an OIDC client for a service the policy does not have", err, hostapi.CodeNotGranted.Name)
	thief := *ursula
	thief.HostKey = nil
	_, err = thief.Do(ctx, hostapi.Path("oidc"), r)
	s.refused("a copy of ursula's SVID without her SSH host key", err, hostapi.CodeDeviceKey.Name)
	thief.HostKey = raishan.HostKey
	_, err = thief.Do(ctx, hostapi.Path("oidc"), r)
	s.refused("a copy of ursula's SVID with another SSH host key", err, hostapi.CodeDeviceKey.Name)

	mgmt01 := kit.ID("node/mgmt01")
	stranger := kit.NewCA().Issue(mgmt01, time.Hour)
	s.refused("a stranger CA's mgmt01 at ursula's forwarder", s.knock(ctx, "outline", stranger), "CRYPTO_ERROR", "tls", "certificate")
	forged := *raishan
	forged.SVID, forged.Node = stranger, mgmt01
	_, err = forged.Artifact(ctx)
	s.refused("a stranger CA's mgmt01 at the provider", err, hostapi.CodeUntrusted.Name)

	if err := s.replay(ctx); err != nil {
		return err
	}
	return s.tamper(ctx)
}

// refused checks that an action failed with an error. The error must contain all of the given
// texts.
func (s *demo) refused(name string, err error, about ...string) {
	found := "was let in"
	if err != nil {
		found = strings.TrimSpace(err.Error())
	}
	ok := false
	for _, a := range about {
		ok = ok || err != nil && strings.Contains(found, a)
	}
	s.held(&s.refusals, name, ok, found)
}

// client returns a client of the provider for one kind of need. The client has the credentials of
// the given host.
func (s *demo) client(host, kind string) (*hostapi.Client, error) {
	h := s.hosts[host]
	roots, err := trust.NewRoots(kit.Domain, h.Manifest.Trust.Roots)
	if err != nil {
		return nil, err
	}
	svid, err := h.SVID("cert-node")
	if err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(h.HostKey())
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(secret)
	if err != nil {
		return nil, err
	}
	return &hostapi.Client{Node: h.Manifest.Identity.ID, Provider: s.hosts["ursula"].Manifest.Providers[forge][kind], Roots: roots, SVID: svid, HostKey: key}, nil
}

// knock opens a connection to a service on the host ursula with the given certificate.
func (s *demo) knock(ctx context.Context, service string, svid *tls.Certificate) error {
	target, err := spiffe.NewID(kit.Domain, spiffe.KindService, "", service)
	if err != nil {
		return err
	}
	return local.Knock(ctx, s.hosts["ursula"].Manifest.Forwarder.Listen[0], target, svid)
}

// replay enrols with a proof, and then sends the same proof again over the same connection. The
// provider must refuse it.
func (s *demo) replay(ctx context.Context) error {
	h := s.hosts["raishan"]
	client, err := s.client(h.Name, "cert")
	if err != nil {
		return err
	}
	conn, err := tls.Dial("tcp", client.Provider.Addresses[0], &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	replies := bufio.NewReader(conn)
	post := func(path string, header http.Header, in, out any) error {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		req, err := http.NewRequest(http.MethodPost, "https://provider"+path, bytes.NewReader(b))
		if err != nil {
			return err
		}
		req.Header = header
		if err := req.Write(conn); err != nil {
			return err
		}
		res, err := http.ReadResponse(replies, req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if b, err = io.ReadAll(res.Body); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			refusal := &hostapi.Error{}
			return errors.Join(json.Unmarshal(b, refusal), refusal)
		}
		return json.Unmarshal(b, out)
	}
	var nonce hostapi.Nonce
	if err := post(hostapi.PathNonce, http.Header{}, struct{}{}, &nonce); err != nil {
		return err
	}
	csr := kit.CSR(client.Node, kit.NewKey())
	block, _ := pem.Decode([]byte(csr))
	state := conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&state)
	if err != nil {
		return err
	}
	for i := range 2 {
		body, err := json.Marshal(hostapi.CertBody{ID: client.Node, CSR: csr})
		if err != nil {
			return err
		}
		r := hostapi.Request{Need: "cert-node", Serial: s.serial, Generation: 1, Body: body}
		if r.Proof, err = (hostapi.Statement{Node: client.Node, Provider: client.Provider.ID, Nonce: nonce.Nonce, CSR: block.Bytes, Binding: binding}).Sign(client.HostKey); err != nil {
			return err
		}
		key, err := r.Key(client.Node)
		if err != nil {
			return err
		}
		var a hostapi.Answer
		err = post(hostapi.Path("cert"), http.Header{hostapi.HeaderKey: {key}}, r, &a)
		if i == 0 && err != nil {
			return fmt.Errorf("enrolment before the replay: %w", err)
		}
		if i == 1 {
			s.refused("a replayed enrolment proof", err, hostapi.CodeReplayed.Name)
		}
	}
	return nil
}

// tamper simulates an intruder who controls the config provider. The intruder serves a manifest
// with an additional role. The digest of this manifest is right, but it is signed with the
// intruder's own key. The hosts must refuse it.
func (s *demo) tamper(ctx context.Context) error {
	mallory, _, err := signature.GenerateKeypair("demo-1", nil)
	if err != nil {
		return err
	}
	documents := map[string][]document.Document{}
	for _, host := range hostNames {
		d, err := document.Read(s.Path("newer", host), document.DocManifest)
		if err != nil {
			return err
		}
		if host == "raishan" {
			if d, err = promoted(d); err != nil {
				return err
			}
		}
		documents[host] = []document.Document{d}
	}
	tree, err := archive.Sign(documents, mallory, time.Now())
	if err != nil {
		return err
	}
	var stream bytes.Buffer
	if err := tree.Encode(&stream); err != nil {
		return err
	}
	var refusal error
	err = s.breakIn(ctx, &stream, []string{mallory.ToPublicKey().String()}, func() error {
		return s.until(ctx, "the tampered document being refused", func() bool {
			refusal = s.refetch(ctx, "raishan")
			return refusal != nil && !strings.Contains(refusal.Error(), hostapi.CodeUnavailable.Name)
		})
	})
	if err != nil {
		return err
	}
	s.refused("a tampered document", refusal, "tampered")
	// Any host may have requested its documents meanwhile.
	for _, host := range hostNames {
		if err := s.until(ctx, "the documents of "+host, func() bool { return s.refetch(ctx, host) == nil }); err != nil {
			return err
		}
	}
	return nil
}

// promoted returns a forged manifest of the host raishan that gives the host the role of an
// operator.
func promoted(d document.Document) (document.Document, error) {
	envelope, body, _ := d.Bytes()
	evil := bytes.Replace(body, []byte(`"roles":["beacon"`), []byte(`"roles":["operator"`), 1)
	if bytes.Equal(evil, body) {
		return d, errors.New("the manifest of raishan has no role to change")
	}
	envelope = bytes.Replace(envelope, []byte(document.Digest(body)), []byte(document.Digest(evil)), 1)
	return document.Open(envelope, evil, "")
}
