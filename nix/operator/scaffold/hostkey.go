package scaffold

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	sshkey "golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/terminal"
)

// KeySource tells how to get the public SSH host key of a new host: from the command line, or from
// the host itself. A host that joins with a token has no key in the flake.
type KeySource struct {
	Key, Fingerprint string // public key line, or the fingerprint that the fetched key must have; may be empty
	Join             bool   // the host joins with a token, and the flake declares no key
	Port             int    // port of its SSH server
}

// Get returns the public SSH host key of a host in the form of authorized_keys, without a comment.
// If k.Key is empty, Get fetches the key from the SSH server of the host. For a host that joins
// with a token, Get returns "".
func (k KeySource) Get(ask terminal.Console, h Host) (string, error) {
	if k.Join {
		return "", nil
	}
	if k.Key != "" {
		key, _, _, _, err := sshkey.ParseAuthorizedKey([]byte(k.Key))
		if err != nil {
			// The value is not quoted, because it may be the private key.
			if _, there := os.Stat(k.Key); there == nil {
				return "", fmt.Errorf("--ssh-host-key: found a file, want its line: --ssh-host-key \"$(cat %s)\"", k.Key)
			}
			return "", fmt.Errorf("--ssh-host-key: %w: want the line of /etc/ssh/ssh_host_ed25519_key.pub", err)
		}
		return line(key), nil
	}
	if len(h.Addresses) == 0 {
		return "", fmt.Errorf("host %s: no address to fetch its SSH host key from: give one, or --ssh-host-key, or --join", h.Name)
	}
	at := h.Addresses[0]
	if host, _, err := net.SplitHostPort(at); err == nil { // the port is that of the forwarder
		at = host
	}
	key, err := fetchHostKey(net.JoinHostPort(strings.Trim(at, "[]"), strconv.Itoa(k.Port)))
	if err != nil {
		return "", fmt.Errorf("SSH host key of %s: %w: give it with --ssh-host-key, or --join", h.Addresses[0], err)
	}
	found := sshkey.FingerprintSHA256(key)
	if k.Fingerprint != "" {
		if found != k.Fingerprint {
			return "", fmt.Errorf("SSH host key of %s: found %s, want %s: another machine answers there, or the fingerprint is not that of the %s key", h.Addresses[0], found, k.Fingerprint, key.Type())
		}
		return line(key), nil
	}
	return line(key), confirm(ask, h, key)
}

func line(key sshkey.PublicKey) string {
	return strings.TrimSpace(string(sshkey.MarshalAuthorizedKey(key)))
}

// confirm asks a person to compare a key, because an attacker on the network could have replaced
// it.
func confirm(ask terminal.Console, h Host, key sshkey.PublicKey) error {
	file := strings.TrimSuffix(strings.TrimPrefix(key.Type(), "ssh-"), "-sha2-nistp256")
	return ask.Confirm(fmt.Sprintf("%s answers with the SSH host key\n\n  %s (%s)\n\nCompare it with what this prints on the console of %s:\n\n  ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub\n\nIs it the same?",
		h.Addresses[0], sshkey.FingerprintSHA256(key), key.Type(), h.Name, file),
		fmt.Sprintf("the SSH host key of %s was not confirmed, and nothing was written: --fingerprint SHA256:… does so without a question", h.Name))
}

// errFetched ends a connection that was only made to fetch the host key.
var errFetched = errors.New("fetched")

// fetchHostKey returns the host key of the SSH server at an address. If the server has several
// keys, it returns the key of the best type that the topology accepts.
func fetchHostKey(address string) (key sshkey.PublicKey, err error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	_, _, _, err = sshkey.NewClientConn(conn, address, &sshkey.ClientConfig{
		User:              "florctl",
		HostKeyAlgorithms: []string{sshkey.KeyAlgoED25519, sshkey.KeyAlgoECDSA256, sshkey.KeyAlgoRSASHA512},
		HostKeyCallback: func(_ string, _ net.Addr, k sshkey.PublicKey) error {
			key = k
			return errFetched
		},
	})
	if key != nil {
		return key, nil
	}
	return nil, err
}
