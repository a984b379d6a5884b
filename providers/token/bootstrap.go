package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixsock"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
)

// bootstrapped is the beginning of the keys that record the tenants whose first administrators were
// named.
const bootstrapped = "token/bootstrapped/"

// maxAdmins is the largest number of administrators that can be named at once. Each administrator
// gets a policy for each action on rules.
const maxAdmins = 20

// Bootstrap is the body of POST /v1/tenants/{tenant}/bootstrap. With this request, root on the
// provider host appoints the first administrators of a tenant.
type Bootstrap struct {
	Admins []spiffe.ID `json:"admins"` // identities that may change all rules of the tenant from now on
}

// serveBootstrap serves the bootstrap socket until ctx ends. Only the provider's account and root
// can enter its directory, so a caller needs no other proof.
func (t *Tokens) serveBootstrap(ctx context.Context) error {
	dir := filepath.Dir(t.Bootstrap)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("directory %s: mode %04o lets others in, want one of its own: chmod 0700 it, or name another", dir, info.Mode().Perm())
	}
	l, err := unixsock.Listen(t.Bootstrap, "unix", 0o600)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path("{tenant}")+"/bootstrap", t.bootstrap)
	hs := &http.Server{Handler: mux, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(t.Logger.Handler(), slog.LevelDebug)}
	t.Logger.Warn("whoever is root here can name the first administrators of tenants, once for each: take token.bootstrap out of the settings after that", "at", t.Bootstrap)
	return conns.Serve(ctx, hs, conns.Patient(l, t.Logger))
}

// bootstrap answers a request that names the first administrators of a tenant. It gives them their
// policies and writes an audit row.
func (t *Tokens) bootstrap(w http.ResponseWriter, r *http.Request) {
	row := server.Row{Time: time.Now().UTC(), Caller: "this host, at the bootstrap socket", Kind: Name, Code: CodeBootstrap, Detail: map[string]string{"tenant": r.PathValue("tenant")}}
	answer, err := t.nameAdmins(w, r, row)
	if err == nil {
		respond(w, http.StatusOK, "no-store", answer)
		return
	}
	refusal := hostapi.AsError(err)
	if err := t.Audit.Write(r.Context(), row.Refuse(refusal)); err != nil {
		t.Logger.Error("a refusal is in this log alone", "error", err, "refused", refusal.Message)
	}
	respond(w, refusal.Status(), "no-store", refusal)
}

func (t *Tokens) nameAdmins(w http.ResponseWriter, r *http.Request, row server.Row) (TenantRules, error) {
	tenant, err := t.changeable(r.PathValue("tenant"))
	if err != nil {
		return TenantRules{}, err
	}
	var b Bootstrap
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = strictjson.Decode(body, &b)
	}
	switch n := len(b.Admins); {
	case err != nil:
		return TenantRules{}, malformed("body: %v: want {\"admins\":[\"spiffe://…/user/…\"]}", err)
	case n == 0 || n > maxAdmins:
		return TenantRules{}, malformed("%d admins, want 1 to %d", n, maxAdmins)
	}
	slices.SortFunc(b.Admins, func(a, b spiffe.ID) int { return strings.Compare(a.String(), b.String()) })
	b.Admins = slices.Compact(b.Admins)
	if e, err := store.Find(r.Context(), t.Store, bootstrapped+tenant.name); err != nil {
		return TenantRules{}, err
	} else if e.Modified != 0 {
		return TenantRules{}, hostapi.Errorf(hostapi.CodeReplayed, "tenant %s has had its first administrators named, which is once: whoever has %s there adds others", tenant.name, rules.ManagePolicies)
	}
	f, err := t.tenants.inForce(r.Context(), tenant)
	if err != nil {
		return TenantRules{}, err
	}
	txn := store.Txn{If: append(f.as, store.Cond{Key: bootstrapped + tenant.name})}
	answer, names := TenantRules{[]Rule{}, []Rule{}}, []string{}
	for _, id := range b.Admins {
		names = append(names, id.String())
		for _, action := range []string{rules.View, rules.ManagePolicies, rules.ManageGroupings} {
			rule := Rule{Policy: &rules.Policy{Subject: id.String(), Action: action, Object: rules.TenantObject(tenant.name).String()},
				Origin: OfRuntime, By: row.Caller, Added: unixtime.Of(row.Time)}
			if err := rule.check(tenant.names); err != nil {
				return TenantRules{}, malformed("tenant %s: %v", tenant.name, err)
			}
			value, err := json.Marshal(rule)
			if err != nil {
				return TenantRules{}, err
			}
			txn.Then = append(txn.Then, store.Put(rule.key(tenant.name), value))
			answer.Policies = append(answer.Policies, rule)
		}
	}
	if err := f.room(answer.Policies[0], len(answer.Policies)); err != nil {
		return TenantRules{}, err
	}
	row.Outcome, row.Message = server.Granted, fmt.Sprintf("tenant %s has its first administrators: %s", tenant.name, strings.Join(names, ", "))
	txn.Then = append(txn.Then, store.Put(changesOf(tenant.name), []byte(CodeBootstrap)), store.Put(bootstrapped+tenant.name, []byte(row.Time.Format(time.RFC3339))), row.Op())
	if _, err := t.Store.Commit(r.Context(), txn); errors.Is(err, store.ErrConflict) {
		return TenantRules{}, hostapi.Errorf(hostapi.CodeBusy, "tenant %s changed at the same time", tenant.name).After(time.Second)
	} else if err != nil {
		return TenantRules{}, err
	}
	row.Log(r.Context(), t.Logger)
	return answer, nil
}
