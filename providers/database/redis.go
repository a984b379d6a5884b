package database

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/providers/serveraccount"
)

// redis is a connection to a Redis server of version 7 or newer, or to a Valkey server. A database
// is an ACL user, with the keys and channels whose names start with the user's name and a colon.
// During a rotation the user has two passwords.
type redis struct {
	net.Conn
	in *bufio.Reader
}

var _ backend = (*redis)(nil)

// may lists the commands that users may run. It excludes commands that show or change data of other
// users, such as names of keys (CLIENT TRACKING) and sizes (MEMORY). It also excludes scripts.
// While a script runs without end, the server answers nobody, so that the provider could not end
// the user.
var may = strings.Fields("+@all -@admin -@dangerous -@scripting -scan -randomkey -dbsize -pubsub -memory -client|tracking -client|trackinginfo -client|caching -client|getredir -select +select|0")

func openRedis(ctx context.Context, s serveraccount.Server, password string) (backend, error) {
	conn, err := serveraccount.Dial(ctx, s.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	r := &redis{conn, bufio.NewReader(conn)}
	until, _ := ctx.Deadline()
	conn.SetDeadline(until)
	if password != "" {
		_, err = r.do("AUTH", s.User, password)
	} else {
		_, err = r.do("PING")
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *redis) user(name, _ string) string { return name }

// slots returns the first slot if the user exists, so that the next login uses the other slot.
func (r *redis) slots(ctx context.Context, name string) ([]string, error) {
	is, err := r.list("ACL", "GETUSER", name)
	if err != nil || is == nil {
		return nil, err
	}
	return []string{"a"}, nil
}

func (r *redis) works(_ context.Context, name string, logins []credential) (bool, error) {
	is, err := r.list("ACL", "GETUSER", name)
	if err != nil {
		return false, err
	}
	has := map[any]any{}
	for i := 0; i+1 < len(is); i += 2 {
		has[is[i]] = is[i+1]
	}
	flags, _ := has["flags"].([]any)
	hashes, _ := has["passwords"].([]any)
	for _, l := range logins {
		if !slices.Contains(hashes, any(hashed(l.Password))) {
			return false, nil
		}
	}
	return slices.Contains(flags, any("on")), nil
}

func hashed(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

func (r *redis) set(_ context.Context, name string, logins []credential) error {
	if len(logins) == 0 {
		return r.off(name)
	}
	words := []string{"ACL", "SETUSER", name, "on"}
	var hashes []string
	for _, l := range logins {
		if l.Password == "" {
			continue // a login without a password stays as it is
		}
		hashes = append(hashes, "#"+hashed(l.Password))
	}
	if len(hashes) == len(logins) {
		words = append(words, "resetpass")
	}
	words = append(words, hashes...)
	words = append(words, "resetkeys", "~"+name+":*", "resetchannels", "&"+name+":*", "nocommands")
	if err := r.run(append(words, may...)...); err != nil {
		return err
	}
	return r.save()
}

// off disables an existing user and ends its connections.
func (r *redis) off(name string) error {
	is, err := r.list("ACL", "GETUSER", name)
	if err != nil || is == nil {
		return err
	}
	if err := r.run("ACL", "SETUSER", name, "off", "resetpass"); err != nil {
		return err
	}
	if err := r.run("CLIENT", "KILL", "USER", name); err != nil {
		return err
	}
	return r.save()
}

// save writes the users to the server's ACL file, so that they survive a restart of the server.
func (r *redis) save() error { return r.run("ACL", "SAVE") }

func (r *redis) drop(ctx context.Context, name string) error {
	for cursor := "0"; ; {
		page, err := r.list("SCAN", cursor, "MATCH", name+":*", "COUNT", "1000")
		if err != nil {
			return err
		}
		if len(page) != 2 {
			return serveraccount.Errorf("redis: SCAN: %d replies, want two", len(page))
		}
		cursor, _ = page[0].(string)
		keys, _ := page[1].([]any)
		words := []string{"UNLINK"}
		for _, k := range keys {
			key, _ := k.(string)
			words = append(words, key)
		}
		if len(words) > 1 {
			if err := r.run(words...); err != nil {
				return err
			}
		}
		if cursor == "0" || cursor == "" {
			break
		}
		r.SetDeadline(time.Now().Add(serveraccount.Deadline)) // deadline of each page
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := r.run("ACL", "DELUSER", name); err != nil {
		return err
	}
	return r.save()
}

func (r *redis) run(words ...string) error {
	_, err := r.do(words...)
	return err
}

// list sends a command whose reply is an array. If the reply is nil, it returns nil.
func (r *redis) list(words ...string) ([]any, error) {
	v, err := r.do(words...)
	if err != nil {
		return nil, err
	}
	all, _ := v.([]any)
	return all, nil
}

// do sends a command and reads the reply. If the command has a password, errors do not contain the
// command.
func (r *redis) do(words ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	_, err := r.Write([]byte(b.String()))
	var v any
	if err == nil {
		v, err = readReply(r.in, 0)
	}
	if err != nil {
		what := words[0]
		if len(words) > 1 && (what == "ACL" || what == "CLIENT") {
			what += " " + words[1]
		}
		return nil, serveraccount.Errorf("redis: %s: %w", what, err)
	}
	return v, nil
}
