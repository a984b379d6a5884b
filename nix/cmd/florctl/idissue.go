package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/publish"
)

// issuing is one florctl id issue.
type issuing struct {
	host, request, device string
	id                    string
	lifetime              time.Duration
	key                   published.Key
	by                    *ca.Authority
	dir                   ca.Dir
	now                   time.Time

	manifest document.Manifest
	wanted   map[spiffe.ID]crypto.PublicKey // keys of the request; nil where they are made here
	proves   ssh.PublicKey                  // SSH host key or device key of the host
	file     hostapi.IdentityFile
	record   []issued
}

func newIDIssueCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue [FLAKE] (--host HOST | --request FILE | --id ID) --key FILE --out FILE",
		Short: "Make an identity file: what a host without a network would have fetched",
		Long: `Make an identity file of a host: the certificates that the flake gives it, with its
documents and the revocation list. flor enroll FILE installs it there; from then on the host
renews over the network, where there is one. Keys are made here:

  florctl id issue --host laptop --key signing.key --out laptop.age --passphrase

or on the host, and do not leave it:

  flor id create > laptop.request                                        (there)
  florctl id issue --request laptop.request --key signing.key --out laptop.age

With --id it is the one certificate of a user, a service or a vertex, for a machine that is no
host of the flake: flor enroll FILE --out DIR --trust KEY.

The file is sealed with age to the host's own key, where that is known; otherwise name a
passphrase or a recipient. The certificates are signed with enrol.key, which florctl ca init
makes, and recorded beside it (florctl id list) and in the audit log of a provider.`,
	}
	i := &issuing{}
	from, reach := source(cmd), via(cmd)
	f := cmd.Flags()
	f.StringVar(&i.host, "host", "", "whose keys are to be made here")
	f.StringVar(&i.request, "request", "", "`FILE` that flor id create printed")
	f.StringVar(&i.id, "id", "", "one `ID`, such as user/alice or vertex/gate, for a machine that is no host")
	f.StringVar(&i.device, "device", "", "the `FINGERPRINT` that flor id create printed, where the flake has no sshHostKey of the host")
	cmd.MarkFlagsOneRequired("host", "request", "id")
	cmd.MarkFlagsMutuallyExclusive("host", "request", "id")
	key := signing(cmd)
	cmd.MarkFlagRequired("key")
	out := f.String("out", "", "write the identity file to `FILE`, - for standard output")
	cmd.MarkFlagRequired("out")
	dir := f.String("dir", ".", "`DIR`ectory with enrol.crt and enrol.key")
	f.DurationVar(&i.lifetime, "lifetime", 7*24*time.Hour, "of the certificates, 90 days at most")
	offline := f.Bool("offline", false, "do without providers: whatever is revoked or has joined, and with no row in the audit log")
	identities := agefile.Opening(cmd, "ca-", "enrol.key, where it is sealed")
	seal := agefile.Flags(cmd, "the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if i.lifetime < time.Minute || i.lifetime > trust.MaxLifetime {
			return fmt.Errorf("--lifetime %s: want between a minute and %s", i.lifetime, trust.MaxLifetime)
		}
		if *out != atomicfile.Stdout {
			if err := secretfile.RefuseTree(*out); err != nil {
				return err
			}
		}
		i.dir, i.now = ca.Dir(*dir), time.Now()
		src, err := from(args)
		if err != nil {
			return err
		}
		if i.key, err = key(); err != nil {
			return err
		}
		read := i.read
		if i.id != "" {
			read = i.readOne
		}
		if err := read(cmd.Context(), src); err != nil {
			return err
		}
		var c published.Cluster
		if !*offline {
			t, err := compile.ReadTopology(cmd.Context(), src)
			if err != nil {
				return err
			}
			if c, err = reach(t); err != nil {
				return err
			}
			if err := i.compare(cmd.Context(), c); err != nil {
				return err
			}
		}
		open, err := identities(i.dir.Path(ca.EnrolmentKey))
		if err != nil {
			return err
		}
		if i.by, err = i.dir.LoadEnrolment(open...); err != nil {
			return err
		}
		if err := i.issue(); err != nil {
			return err
		}
		to, err := seal.Recipients(*out)
		if err == nil && len(to) == 0 {
			to, err = i.recipient()
		}
		if err != nil {
			return err
		}
		sealed, err := i.seal(to)
		if err != nil {
			return err
		}
		if err := keepRecord(i.dir, i.record); err != nil {
			return err
		}
		if !*offline {
			if err := recordIssued(cmd.Context(), c, i.record); err != nil {
				return fmt.Errorf("nothing is issued that is in no audit log: %w", err)
			}
		}
		messages, err := output(cmd, *out, 0o600, sealed)
		if err != nil {
			return err
		}
		for _, r := range i.record {
			fmt.Fprintf(messages, "%s: certificate %s until %s\n", r.ID.Short(), r.Serial, r.Until.UTC().Format(time.RFC3339))
		}
		if i.id != "" {
			fmt.Fprintf(messages, "%s: identity file of %s: flor enroll --out DIR --trust %s there\n", *out, i.id, i.key.ToPublicKey())
			return nil
		}
		fmt.Fprintf(messages, "%s: identity file of %s: flor enroll there\n", *out, i.host)
		return nil
	}
	return cmd
}

// read reads the request, the signing key, and what the flake gives the host.
func (i *issuing) read(ctx context.Context, src compile.Source) error {
	var request hostapi.IdentityRequest
	if i.request != "" {
		b, err := os.ReadFile(i.request)
		if err != nil {
			return err
		}
		var signed hostapi.SignedIdentityRequest
		if err := strictjson.Decode(bytes.TrimSpace(b), &signed); err != nil {
			return fmt.Errorf("%s: %w: want what flor id create printed", i.request, err)
		}
		if request, i.proves, err = signed.Verify(); err != nil {
			return fmt.Errorf("%s: %w", i.request, err)
		}
		i.host = request.Node.Name()
	}
	c, err := compile.Compile(ctx, src, i.host)
	if err != nil {
		return err
	}
	if err := i.key.CheckPinned(c.Name, c.Documents); err != nil {
		return err
	}
	documents, err := publish.Sign(c.Documents, i.key.SecretKey, i.now)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	for _, d := range documents[i.host] {
		if d.Envelope.Kind == document.DocManifest {
			i.manifest = d.Manifest()
		}
		envelope, body, sig := d.Bytes()
		i.file.Artifact.Documents = append(i.file.Artifact.Documents, hostapi.SignedDocument{Envelope: string(envelope), Body: string(body), Signature: sig})
	}
	if i.request != "" {
		err = i.requested(request)
	} else if !i.manifest.Identity.Joins {
		i.proves, err = hostapi.ParseHostKey(i.manifest.Identity.SSHHostKey)
	} else {
		err = i.makeDevice()
	}
	return err
}

// requested takes the keys of a request that is really the host's.
func (i *issuing) requested(r hostapi.IdentityRequest) error {
	m := i.manifest
	if r.Cluster != m.Cluster || r.Node != m.Identity.ID {
		return fmt.Errorf("%s: of %s in cluster %.64q, want %s in %q", i.request, r.Node, r.Cluster, m.Identity.ID, m.Cluster)
	}
	fingerprint := ssh.FingerprintSHA256(i.proves)
	switch declared, err := hostapi.ParseHostKey(m.Identity.SSHHostKey); {
	case m.Identity.Joins && i.device == "":
		return fmt.Errorf("%s: --device FINGERPRINT: want the one that flor id create printed on %s: whoever had the file since may have replaced it", i.request, i.host)
	case m.Identity.Joins && i.device != fingerprint:
		return fmt.Errorf("%s: of device %s, not %s: nothing is issued", i.request, fingerprint, i.device)
	case !m.Identity.Joins && err != nil:
		return err
	case !m.Identity.Joins && !bytes.Equal(declared.Marshal(), i.proves.Marshal()):
		return fmt.Errorf("%s: signed by key %s, the flake declares %s as sshHostKey of %s", i.request, fingerprint, ssh.FingerprintSHA256(declared), i.host)
	}
	i.wanted = map[spiffe.ID]crypto.PublicKey{}
	for _, s := range r.SVIDs {
		key, err := ca.ParseCSR([]byte(s.CSR), s.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", i.request, err)
		}
		i.wanted[s.ID] = key
	}
	return nil
}

// makeDevice makes the key by which the host proves itself.
func (i *issuing) makeDevice() error {
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(secret)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		return err
	}
	i.proves, i.file.DeviceKey = signer.PublicKey(), string(pem.EncodeToMemory(block))
	return nil
}

// fingerprint is that of the device key, empty for a host that the flake has the key of.
func (i *issuing) fingerprint() string {
	if !i.manifest.Identity.Joins {
		return ""
	}
	return ssh.FingerprintSHA256(i.proves)
}

// compare takes the revocation list along, and refuses a host that it revokes, and one that is
// another device.
func (i *issuing) compare(ctx context.Context, p published.Cluster) error {
	list, err := p.Continued(ctx, i.key)
	if err != nil {
		return fmt.Errorf("%w: --offline issues without knowing what is revoked", err)
	}
	if err := list.CheckID(i.manifest.Identity.ID); err != nil {
		return err
	}
	if i.proves != nil {
		if err := list.CheckKey(ssh.FingerprintSHA256(i.proves)); err != nil {
			return err
		}
	}
	if list != nil {
		signed := list.AsSigned()
		i.file.Artifact.Revocations = &signed
	}
	if !i.manifest.Identity.Joins {
		return nil
	}
	devices, err := i.devices(ctx, p)
	if err != nil {
		return err
	}
	for _, device := range devices {
		if device != i.fingerprint() && list.CheckKey(device) == nil {
			return fmt.Errorf("the device with key %s is %s: flor id create makes a request there; florctl revoke --host-key %[1]s, if another one replaces it", device, i.host)
		}
	}
	return nil
}

// devices are the fingerprints of those that are or were the host.
func (i *issuing) devices(ctx context.Context, p published.Cluster) (all []string, err error) {
	former, err := readRecord(i.dir)
	if err != nil {
		return nil, err
	}
	for _, f := range former {
		if f.Host == i.host && f.Device != "" {
			all = append(all, f.Device)
		}
	}
	err = p.Providers.All(func(at *client.Provider) error {
		joins, err := at.Joins(ctx)
		for _, r := range joins {
			if r.Host == i.host && r.State == hostapi.JoinApproved {
				all = append(all, r.Fingerprint())
			}
		}
		return err
	})
	return all, err
}
