package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sshkey "golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/nix/operator/compile"
)

// NewMachine prepares a directory whose files nixos-anywhere copies to a new machine, and prints
// the next steps for the operator. The directory contains the SSH host key by which providers
// recognize the machine. If the key does not exist yet, NewMachine generates it. The list names
// must contain exactly one host.
func NewMachine(ctx context.Context, src compile.Source, names []string, dir string, out io.Writer) error {
	if len(names) != 1 {
		return fmt.Errorf("--new %s: found %d hosts, want one, because the directory contains the key of one machine", dir, len(names))
	}
	host := names[0]
	key := filepath.Join(dir, "etc/ssh/ssh_host_ed25519_key")
	if err := secretfile.RefuseTree(key); err != nil {
		return err
	}
	public, err := hostKey(key)
	if err != nil {
		return err
	}
	t, err := compile.ReadTopology(ctx, src)
	declared := strings.Fields(t.Hosts[host].SSHHostKey)
	switch {
	case err != nil || len(declared) < 2:
		fmt.Fprintf(out, "%s: the SSH host key of %s. Write its public half into the topology, and run this again:\n\n  hosts.%s.sshHostKey = %q;\n", key, host, host, public)
		if err != nil {
			return fmt.Errorf("until then: %w", err)
		}
		return nil
	case strings.Join(declared[:2], " ") != public:
		return fmt.Errorf("hosts.%s.sshHostKey is %q, but %s has %q: write this key into the flake, or put the private half of the key in the flake into %s", host, t.Hosts[host].SSHHostKey, key, public, dir)
	}
	fmt.Fprintf(out, "%s has the key that the flake declares. On a machine that can log in to the new one as root, run:\n\n"+
		"  nixos-anywhere --flake %s#%s --extra-files %s root@ADDRESS\n\nRun florctl publish before, so that providers know the new host. Afterwards, remove %s.\n", dir, src.Ref(), host, dir, dir)
	return nil
}

// hostKey returns the public key of the key pair in a file. If the file does not exist, hostKey
// generates the pair.
func hostKey(path string) (string, error) {
	b, err := secretfile.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = makeHostKey(path)
	}
	if err != nil {
		return "", err
	}
	signer, err := sshkey.ParsePrivateKey(b)
	if err != nil {
		return "", fmt.Errorf("%s: not an SSH key without passphrase: %w", path, err)
	}
	return strings.TrimSpace(string(sshkey.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

func makeHostKey(path string) ([]byte, error) {
	secret, public, err := pubkey.NewSSH()
	if err != nil {
		return nil, err
	}
	// nixos-anywhere copies the modes of these directories to the machine.
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		return nil, err
	}
	return secret, os.WriteFile(path+".pub", sshkey.MarshalAuthorizedKey(public), 0o644)
}
