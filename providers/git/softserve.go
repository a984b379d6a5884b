package git

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/serveraccount"
)

// softServe is a connection to a Soft Serve forge, which runs commands over SSH. At such a forge,
// an account can make tokens only for itself. Therefore the provider derives a key for each
// account, and logs in with it as the account.
type softServe struct {
	address string
	admin   *ssh.Client
	key     func(account string) ssh.Signer
}

var _ forge = (*softServe)(nil)

func openSoftServe(ctx context.Context, accounts *sealedstore.Key, f serveraccount.Server, credential string) (forge, error) {
	key, err := ssh.ParsePrivateKey([]byte(credential))
	if err != nil {
		return nil, errors.New("want a private key of SSH without a passphrase")
	}
	s := &softServe{address: f.Address, key: func(account string) ssh.Signer {
		seed := accounts.Derive("florete git account v1\n"+f.Address+"\n"+account, ed25519.SeedSize)
		signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
		if err != nil {
			panic(err) // a key of this kind is one of SSH
		}
		return signer
	}}
	s.admin, err = s.login(ctx, f.User, key)
	return s, err
}

func (s *softServe) Close() error { return s.admin.Close() }

// login connects to the forge as an account. It does not verify the forge's host key, because the
// connection does not leave this machine.
func (s *softServe) login(ctx context.Context, user string, key ssh.Signer) (*ssh.Client, error) {
	conn, err := serveraccount.Dial(ctx, s.address)
	if err != nil {
		return nil, err
	}
	until, _ := ctx.Deadline()
	conn.SetDeadline(until)
	c, channels, requests, err := ssh.NewClientConn(conn, s.address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: func(string, net.Addr, ssh.PublicKey) error { return nil },
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// run runs a command and returns its output. The words of the command come from the provider, or
// contain only characters that the topology allows. If another write locks the forge's database,
// run repeats the command.
func run(c *ssh.Client, words ...string) (out string, err error) {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		out, err = runOnce(c, words...)
		if err == nil || wait > time.Second || !strings.Contains(err.Error(), "database is locked") {
			return out, err
		}
		time.Sleep(wait)
	}
}

func runOnce(c *ssh.Client, words ...string) (string, error) {
	session, err := c.NewSession()
	if err != nil {
		return "", serveraccount.Errorf("soft-serve: %w", err)
	}
	defer session.Close()
	var out, failed bytes.Buffer
	session.Stdout, session.Stderr = &out, &failed
	err = session.Run(strings.Join(words, " "))
	if why := strings.TrimSpace(failed.String()); err != nil && why != "" {
		err = errors.New(strings.TrimPrefix(why, "Error: "))
	}
	if err != nil {
		return "", serveraccount.Errorf("soft-serve: %s: %w", strings.Join(words[:min(4, len(words))], " "), err)
	}
	return out.String(), nil
}

// unless returns nil if err contains the given text. Otherwise it returns err.
func unless(err error, text string) error {
	if err != nil && strings.Contains(err.Error(), text) {
		return nil
	}
	return err
}

// allow grants rights to an account, which it makes if necessary. It ignores the number of the
// account: only administrators can make accounts at Soft Serve, and each account has only the
// provider's key.
func (s *softServe) allow(_ context.Context, account string, rights, former []right, _ int64) (int64, error) {
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.key(account).PublicKey())))
	keys, err := s.keys(account)
	if unless(err, "not found") == nil && err != nil {
		_, err = run(s.admin, "user", "create", account)
	}
	if err == nil && !slices.Contains(keys, key) {
		_, err = run(s.admin, "user", "add-pubkey", account, key)
	}
	for _, k := range keys {
		if err == nil && k != key { // key of a lost state
			_, err = run(s.admin, "user", "remove-pubkey", account, k)
		}
	}
	for _, r := range former {
		if err == nil && !slices.Contains(rights, r) {
			err = s.disallow(account, r.Repository)
		}
	}
	for _, r := range rights {
		if err == nil {
			level := map[string]string{read: "read-only", write: "read-write"}[r.Access]
			_, err = run(s.admin, "repo", "collab", "add", r.Repository, account, level)
			err = unless(err, "already exists")
		}
	}
	return 0, err
}

// disallow revokes the rights of an account for a repository, if both exist.
func (s *softServe) disallow(account, repository string) error {
	out, err := run(s.admin, "repo", "collab", "list", repository)
	if err != nil || !slices.Contains(strings.Fields(out), account) {
		return unless(err, "not found")
	}
	_, err = run(s.admin, "repo", "collab", "remove", repository, account)
	return err
}

// keys returns the SSH keys with which an account can log in.
func (s *softServe) keys(account string) (keys []string, err error) {
	out, err := run(s.admin, "user", "info", account)
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "ssh-") || strings.HasPrefix(line, "ecdsa-") || strings.HasPrefix(line, "sk-") {
			keys = append(keys, line)
		}
	}
	return keys, err
}

// as runs a command as the given account, and returns its output.
func (s *softServe) as(ctx context.Context, user string, words ...string) (string, error) {
	c, err := s.login(ctx, user, s.key(user))
	if err != nil {
		return "", serveraccount.Errorf("soft-serve: account %s: %w", user, err)
	}
	defer c.Close()
	return run(c, words...)
}

// tokens returns the names of an account's tokens. The keys are the IDs of the tokens. It parses
// the table that Soft Serve prints, which begins with these columns.
func (s *softServe) tokens(ctx context.Context, account string) (map[string]string, error) {
	if _, err := s.keys(account); err != nil {
		return nil, unless(err, "user not found")
	}
	if _, err := s.allow(ctx, account, nil, nil, 0); err != nil { // replaces the key of a lost state
		return nil, err
	}
	out, err := s.as(ctx, account, "token", "list")
	of := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) > 1 && strings.Trim(words[0], "0123456789") == "" {
			of[words[0]] = words[1]
		}
	}
	return of, err
}

func (s *softServe) create(ctx context.Context, user, name, _ string, lasts time.Duration) (string, error) {
	out, err := s.as(ctx, user, "token", "create", "--expires-in", fmt.Sprintf("%ds", int(lasts.Seconds())), name)
	token := strings.TrimSpace(out)
	if err == nil && !strings.HasPrefix(token, "ss_") {
		err = serveraccount.Errorf("soft-serve: token create: %d bytes that are no token", len(out))
	}
	return token, err
}

func (s *softServe) end(ctx context.Context, account, id string) error {
	_, err := s.as(ctx, account, "token", "delete", id)
	return unless(err, "not found")
}
