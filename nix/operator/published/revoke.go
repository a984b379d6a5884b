package published

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/revocation"
)

// Target returns the target of a revocation, given the arguments of a command. The argument id is a
// SPIFFE ID, a short ID such as "user/alice", or empty. The keys are SSH host keys or their
// fingerprints, and the serials are serial numbers of certificates in hexadecimal.
func (c Cluster) Target(id string, keys, serials []string) (t revocation.Target, err error) {
	if id != "" {
		if !strings.Contains(id, "/") {
			return t, fmt.Errorf("%q: want --host %[1]s for a host, or an ID such as user/%[1]s", id)
		}
		if !strings.Contains(id, "://") {
			id = "spiffe://" + c.Topology.TrustDomain + "/" + id
		}
		if t.ID, err = spiffe.ParseID(id); err == nil {
			err = checkDomain(c.Topology, t.ID)
		}
		if err != nil {
			return t, err
		}
	}
	for _, serial := range serials {
		serial = strings.ToLower(strings.ReplaceAll(serial, ":", ""))
		if serial = strings.TrimLeft(serial, "0"); serial == "" || strings.Trim(serial, "0123456789abcdef") != "" {
			return t, fmt.Errorf("--serial %q: want a number in hex", serial)
		}
		t.Certificates = append(t.Certificates, serial)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "SHA256:") {
			if key, err = revocation.Fingerprint(key); err != nil {
				return t, fmt.Errorf("--host-key: %w", err)
			}
		}
		t.Keys = append(t.Keys, key)
	}
	return t, nil
}

// checkDomain returns an error if the trust domain of an identity is not in the flake. No host of
// this cluster verifies such an identity, so that a revocation would have no effect.
func checkDomain(t compile.Topology, id spiffe.ID) error {
	known := []string{t.TrustDomain}
	for _, name := range slices.Sorted(maps.Keys(t.Federated)) {
		known = append(known, t.Federated[name].TrustDomain)
	}
	if slices.Contains(known, id.TrustDomain()) {
		return nil
	}
	return fmt.Errorf("%s: found trust domain %s, want one of %s: declare other trust domains under federated in the flake", id, id.TrustDomain(), strings.Join(known, ", "))
}

// Revising contains options for signing and publishing a revocation list.
type Revising struct {
	Key   Key
	Valid time.Duration // time until a newer list is due
	Wait  time.Duration // maximum wait for hosts to report the list in force
	Force bool          // publish even if a host reports a newer list than the providers have
}

// Revoke publishes a revocation list that also revokes the given target. Revoking a host also
// revokes its SSH host key. Revoking a key also revokes the certificates that hosts with this key
// have received.
func (c Cluster) Revoke(ctx context.Context, how Revising, t revocation.Target) error {
	for id, key := range hostKeys(c.Topology) {
		if id == t.ID {
			t.Keys = append(t.Keys, key)
		} else if slices.Contains(t.Keys, key) {
			t.Before = append(t.Before, id)
		}
	}
	return c.Revise(ctx, how, func(list *trust.Revocations) error { revocation.Revoke(list, t); return nil })
}

// Reinstate publishes a revocation list that no longer revokes the given target. It prints the
// commands with which the hosts of the target request new certificates at once.
func (c Cluster) Reinstate(ctx context.Context, how Revising, t revocation.Target) error {
	err := c.Revise(ctx, how, func(list *trust.Revocations) error { return revocation.Reinstate(list, t) })
	if err == nil || errors.Is(err, fleet.ErrAttention) {
		for _, command := range requestsOf(c.Topology, t.ID) {
			fmt.Fprintf(c.Out, "its host requests a new certificate within an hour; to request it now, run: %s\n", command)
		}
	}
	return err
}

// requestsOf returns the commands with which hosts request the certificates of a reinstated
// identity at once. The old certificates remain revoked.
func requestsOf(t compile.Topology, id spiffe.ID) (all []string) {
	for _, host := range slices.Sorted(maps.Keys(t.Hosts)) {
		h := t.Hosts[host]
		need := ""
		switch {
		case h.ID == id:
			need = "cert-node"
		case id.TrustDomain() == t.TrustDomain && id.Kind() == spiffe.KindUser && slices.Contains(h.Users, id.Name()):
			need = "cert-user-" + id.Name()
		case id.TrustDomain() == t.TrustDomain && id.Kind() == spiffe.KindVertex && id.Name() == host && h.Relay:
			need = "cert-vertex"
		}
		if need != "" {
			all = append(all, fmt.Sprintf("ssh root@%s %s refetch %s", host, h.Instance.Program("flor"), need))
		}
	}
	return all
}

// Revise publishes a new revocation list, and waits until hosts use it. The last argument is a
// function that changes a copy of the current list before it is signed.
func (c Cluster) Revise(ctx context.Context, how Revising, with func(*trust.Revocations) error) error {
	began := time.Now()
	record, err := openRecord(how.Key.record, c.Topology.Name)
	if err != nil {
		return err
	}
	by, err := how.Key.begin(c.Topology.Name, actRevoke, c.Topology.Trust.Signers())
	if err != nil {
		return err
	}
	next, s, err := c.next(ctx, by, record, how.Valid, how.Force, with)
	if err == nil && by.Serial != 0 && by.Serial != next.Number {
		err = fmt.Errorf("--with %s: signs revocation list %d, but the next list is %d: sign again", how.Key.others[0].file, by.Serial, next.Number)
	}
	if err != nil {
		return err
	}
	by.Serial = next.Number
	if err := by.write(c.Out, fmt.Sprintf("cluster %s, revocation list %d, %s", c.Topology.Name, next.Number, document.Digest([]byte(s.List)))); err != nil {
		return err
	}
	if err := c.put(ctx, record, s); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "revocation list %d is offered to hosts; the next one is due on %s\n", next.Number, next.NextUpdate.UTC().Format(time.DateOnly))
	return c.await(ctx, next, began, how.Wait)
}

// Supply reads a signed revocation list from a file and sends it to the providers, which offer it
// to hosts. It waits until hosts use the list, but no longer than the given duration.
func (c Cluster) Supply(ctx context.Context, file string, wait time.Duration) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, list, err := revocation.Supply(b)
	if err == nil {
		err = s.Verify(list, c.Topology.Name, c.Topology.Trust.Signers())
	}
	if err == nil {
		err = c.offer(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintf(c.Out, "revocation list %d is offered to hosts\n", list.Number)
	return c.await(ctx, list, time.Now(), wait)
}

// hostKeys returns the fingerprints of the SSH host keys in the flake.
func hostKeys(t compile.Topology) map[spiffe.ID]string {
	all := map[spiffe.ID]string{}
	for _, h := range t.Hosts {
		if f, err := revocation.Fingerprint(h.SSHHostKey); err == nil {
			all[h.ID] = f
		}
	}
	return all
}
