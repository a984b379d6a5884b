package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// CodeRotate is the audit code of rows about rotations that an operator ordered.
const CodeRotate = "rotate"

// Rotate is an operator's request that a host replace one of its secrets by a new one.
type Rotate struct {
	Host string `json:"host"`
	Need string `json:"need"`
}

// Ordered is the answer to Rotate. The rotations of a secret are numbered, and Rotation is the
// number of the rotation that the host makes after its next report.
type Ordered struct {
	Rotate
	Rotation int `json:"rotation"`
}

// rotate orders a rotation in addition to those that the host has reported. If the same order
// arrives again before the host has carried it out, rotate orders nothing more.
func (c *call) rotate() (any, error) {
	var o Ordered
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 4<<10))
	if err == nil {
		err = strictjson.Decode(b, &o.Rotate)
	}
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, `body: %v: want {"host":"ursula","need":"oidc-wiki"}`, err)
	}
	err = Order(c.r.Context(), c.Archive.Store, o.Host, o.Need, func(last hostreport.Kept) (int, server.Row, error) { return c.order(&o, last) })
	if err == nil {
		c.row.Log(c.r.Context(), c.Logger)
	}
	return o, err
}

// Order tells a host to replace the secret of one of its needs. The host learns this with the
// answer to its next report.
//
// Order calls decide with the last report of the host, which is zero if there is none. The function
// returns the number of the rotation, and the audit row to store in the same transaction. If decide
// returns an error, Order returns it and stores nothing. If a new report arrives meanwhile, Order
// calls decide again.
func Order(ctx context.Context, s store.Store, host, need string, decide func(last hostreport.Kept) (rotation int, row server.Row, err error)) error {
	return store.Update(ctx, s, server.ReportPrefix+host, func(e store.Entry) (store.Txn, error) {
		var last hostreport.Kept
		if e.Modified != 0 {
			if err := json.Unmarshal(e.Value, &last); err != nil {
				return store.Txn{}, fmt.Errorf("%s: %w", e.Key, err)
			}
		}
		rotation, row, err := decide(last)
		if err != nil {
			return store.Txn{}, err
		}
		if last.Rotate == nil {
			last.Rotate = map[string]int{}
		}
		last.Rotate[need] = rotation
		value, err := json.Marshal(last)
		return store.Txn{Then: []store.Op{store.Put(e.Key, value), row.Op()}}, err
	})
}

// order decides about the rotation that an operator requests. It refuses a need that the host has
// not reported.
func (c *call) order(o *Ordered, last hostreport.Kept) (rotation int, row server.Row, err error) {
	if last.Received.IsZero() {
		return 0, row, hostapi.Errorf(hostapi.CodeMissingInvalid, "host %.64q has not reported to this provider: /v1/hosts has those that did", o.Host)
	}
	report, err := last.Decode()
	if err != nil {
		return 0, row, fmt.Errorf("report of %s: %w", o.Host, err)
	}
	i := slices.IndexFunc(report.Needs, func(n hostreport.Need) bool { return n.ID == o.Need })
	if i < 0 {
		return 0, row, hostapi.Errorf(hostapi.CodeMissingInvalid, "host %s has no need %.64q: /v1/needs has those that it reported", o.Host, o.Need)
	}
	if kind := report.Needs[i].Kind; kind == document.KindCert || kind == document.KindConfig {
		return 0, row, hostapi.Errorf(hostapi.CodeRotationInvalid, "need %s of kind %s has no secret to rotate: run flor refetch %[1]s on %[3]s to fetch it again", o.Need, kind, o.Host)
	}
	o.Rotation = report.Needs[i].Rotations + 1
	before := last.Rotate[o.Need]
	row = c.row
	row.Outcome, row.Code, row.Need = server.Granted, CodeRotate, o.Need
	row.Message = fmt.Sprintf("rotation %d of need %s is ordered of host %s", o.Rotation, o.Need, o.Host)
	row.Detail = map[string]string{"host": o.Host,
		"before": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, before), "after": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, o.Rotation)}
	c.row = row
	return o.Rotation, row, nil
}
