package published

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	sshkey "golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

// Approve approves a host's join request by signing a statement that the requesting device is that
// host (an admission). The argument device is the fingerprint of the device key that the operator
// expects. If it is empty, Approve asks the operator to compare the fingerprint.
func (c Cluster) Approve(ctx context.Context, host, device string, key Key) error {
	by, err := key.begin(c.Topology.Name, actAdmit, c.Topology.Trust.Signers())
	if err != nil {
		return err
	}
	return c.decide(ctx, host, func(r join.Request) (d control.Decision, err error) {
		if h, ok := c.Topology.Hosts[r.Host]; !ok || h.SSHHostKey != "" {
			return d, fmt.Errorf("host %.64q of cluster %s does not join: want a host without sshHostKey, because a host with sshHostKey enrols with this key", r.Host, c.Topology.Name)
		}
		// Compare the key that will be signed, and not the rest of the request.
		is, err := r.Key()
		if err != nil {
			return d, fmt.Errorf("%w: nothing is approved", err)
		}
		if err := key.CheckOf(c.Topology, "providers"); err != nil {
			return d, err
		}
		switch found := sshkey.FingerprintSHA256(is); device {
		case found:
		case "":
			if err := c.Confirm(fmt.Sprintf("Device %s requests to be %s. flor join prints its fingerprint there. Is it the same?", found, r.Host),
				"nothing is approved: --device SHA256:…, as flor join prints it there, approves that device without a question"); err != nil {
				return d, err
			}
		default:
			return d, fmt.Errorf("found device %s, which requests to be %s, want device %s: nothing is approved", found, r.Host, device)
		}
		text, sig, err := by.signJSON("admission of "+c.Topology.Hosts[r.Host].ID.Short(), trust.NewAdmission(c.Topology.Name, c.Topology.Hosts[r.Host].ID, r.Device, by.at), trust.AdmissionText)
		if err == nil {
			err = by.write(c.Out, fmt.Sprintf("admission of device %s as %s", sshkey.FingerprintSHA256(is), r.Host))
		}
		return control.Decision{Admission: &trust.SignedAdmission{Admission: text, Signature: sig}}, err
	})
}

// Reject rejects the join request of a host.
func (c Cluster) Reject(ctx context.Context, host string) error {
	return c.decide(ctx, host, func(join.Request) (control.Decision, error) { return control.Decision{}, nil })
}

// decide sends the decision about a host's join request to the provider that has the request. If
// several providers have one, decide chooses the provider whose request is still waiting.
func (c Cluster) decide(ctx context.Context, host string, how func(join.Request) (control.Decision, error)) error {
	var at *client.Provider
	var found join.Request
	err := c.Providers.All(func(some *client.Provider) error {
		all, err := some.Joins(ctx)
		i := slices.IndexFunc(all, func(r join.Request) bool { return r.Host == host })
		if i >= 0 && (at == nil || all[i].State == hostapi.JoinPending) {
			at, found = some, all[i]
		}
		return err
	})
	if err != nil {
		return err
	}
	if at == nil {
		return fmt.Errorf("no device asks to become host %.64q: florctl join list", host)
	}
	d, err := how(found)
	if err != nil {
		return err
	}
	r, err := at.DecideJoin(ctx, host, d)
	if err == nil {
		fmt.Fprintf(c.Out, "device %s is %s as %s\n", found.Fingerprint(), terminal.Text(string(r.State)), found.Host)
	}
	return err
}

// CreateToken creates a join token at the first provider that answers, and prints it. If key is not
// nil, the key signs a grant, and devices with the token then need no approval by an operator.
func (c Cluster) CreateToken(ctx context.Context, t join.Token, key *Key) error {
	if err := checkJoins(c.Topology, t.Hosts); err != nil {
		return err
	}
	return c.Providers.First(func(at *client.Provider) error {
		token, err := hostapi.NewJoinToken(at.Host)
		if err != nil {
			return err
		}
		t.ID = hostapi.TokenID(token.Public())
		if key != nil {
			if t.Grant, err = c.grant(token, t, *key); err != nil {
				return err
			}
		}
		if _, err := at.CreateToken(ctx, t); err != nil {
			return err
		}
		fmt.Fprintf(c.Err, "join token %s for %q can be used %s until %s, at provider host %s: on the new machine, run flor join - with the token on standard input\n", t.ID[:16], t.Hosts, times(t.Uses), t.Until.UTC().Format(time.RFC3339), at.Host)
		fmt.Fprintln(c.Out, token)
		return nil
	})
}

// times describes in words how often a token can be used.
func times(uses int) string {
	if uses == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", uses)
}

// checkJoins returns an error if a pattern matches no host that can join.
func checkJoins(t compile.Topology, pattern string) error {
	for name, h := range t.Hosts {
		if fits, err := path.Match(pattern, name); err != nil {
			return fmt.Errorf("--host %q: %w", pattern, err)
		} else if fits && h.SSHHostKey == "" {
			return nil
		}
	}
	return fmt.Errorf("--host %q: found no such host without sshHostKey in cluster %s: a host with sshHostKey enrols with this key, and needs no token", pattern, t.Name)
}

// grant signs a statement that the bearer of a token may admit a device.
func (c Cluster) grant(token hostapi.JoinToken, record join.Token, key Key) (*trust.SignedGrant, error) {
	if err := key.CheckOf(c.Topology, "providers"); err != nil {
		return nil, err
	}
	// The token is a secret of the operator who makes it, so no other operator can sign for it.
	if err := key.CheckAlone("--approve", c.Topology.Trust.Signers()); err != nil {
		return nil, fmt.Errorf("%w: create the token without --approve, and admit the device with florctl join approve", err)
	}
	h, ok := c.Topology.Hosts[record.Hosts]
	if !ok || record.Uses != 1 {
		return nil, errors.New("--approve: want the name of one host with --host, and one use")
	}
	text, sig, err := key.SignJSON(trust.JoinGrant{
		Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: c.Topology.Name, Node: h.ID, Token: token.Public(), Until: record.Until,
	}, trust.JoinGrantText)
	return &trust.SignedGrant{Grant: text, Signature: sig}, err
}

// RevokeToken revokes a join token. The argument id is the token's ID, or at least the first eight
// characters of it.
func (c Cluster) RevokeToken(ctx context.Context, id string) error {
	var at *client.Provider
	whole := ""
	err := c.Providers.All(func(some *client.Provider) error {
		tokens, err := some.Tokens(ctx)
		i := slices.IndexFunc(tokens, func(t join.Token) bool { return len(id) >= 8 && strings.HasPrefix(t.ID, id) })
		if i >= 0 && at == nil {
			at, whole = some, tokens[i].ID
		}
		return err
	})
	if err != nil {
		return err
	}
	if at == nil {
		return fmt.Errorf("no join token %.64q: want at least the first eight characters of an ID that florctl join token list prints", id)
	}
	t, err := at.RevokeToken(ctx, whole)
	if err == nil {
		fmt.Fprintf(c.Out, "join token %.16s for %q is revoked\n", t.ID, t.Hosts)
	}
	return err
}
