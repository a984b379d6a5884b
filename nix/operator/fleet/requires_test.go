package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
)

func TestAbsent(t *testing.T) {
	const lacks = " requires the capability kvm, which host ursula does not find on its machine: name another host, or add the device"
	kvm, other := []string{"kvm"}, []string{"ssd"}
	for name, c := range map[string]struct {
		requires func(*compile.Topology, *compile.Host)
		has      []string
		age      time.Duration
		want     string
	}{
		"role of the node": {func(t *compile.Topology, h *compile.Host) {
			h.Roles, t.Roles = []string{"runner"}, map[string]compile.Role{"runner": {Requires: kvm}}
		}, other, 0, "role runner" + lacks},
		"role of a service": {func(t *compile.Topology, h *compile.Host) {
			h.Services, t.Services = []string{"ci"}, map[string]compile.Service{"ci": {Roles: []string{"runner"}}}
			t.Roles = map[string]compile.Role{"runner": {Requires: kvm}}
		}, nil, 0, "role runner" + lacks},
		"placement": {func(t *compile.Topology, h *compile.Host) {
			s := compile.Service{Replicas: "all"}
			s.Placement.Capabilities = kvm
			h.Services, t.Services = []string{"ci"}, map[string]compile.Service{"ci": s}
		}, nil, 0, "service ci" + lacks},
		"placement of a service whose hosts are named": {func(t *compile.Topology, h *compile.Host) {
			s := compile.Service{}
			s.Placement.Capabilities = kvm
			h.Services, t.Services = []string{"ci"}, map[string]compile.Service{"ci": s}
		}, nil, 0, ""},
		"provider": {func(t *compile.Topology, h *compile.Host) {
			h.Kinds, t.Providers = []string{"cert"}, map[string]compile.Provider{"cert": {Requires: kvm}}
		}, nil, 0, "provider cert" + lacks},
		"present":         {func(t *compile.Topology, h *compile.Host) { needKVM(t, h) }, kvm, 0, ""},
		"does not report": {func(t *compile.Topology, h *compile.Host) { needKVM(t, h) }, nil, time.Hour, ""},
		"no device, but a word": {func(t *compile.Topology, h *compile.Host) {
			needKVM(t, h)
			t.Roles["runner"] = compile.Role{Requires: other}
		}, nil, 0, ""},
		"nothing required":       {func(*compile.Topology, *compile.Host) {}, nil, 0, ""},
		"of a host that is gone": {func(t *compile.Topology, h *compile.Host) { needKVM(t, h); delete(t.Hosts, "ursula") }, nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			top, h := compile.Topology{Hosts: map[string]compile.Host{"ursula": {}}}, compile.Host{}
			c.requires(&top, &h)
			if _, ok := top.Hosts["ursula"]; ok {
				top.Hosts["ursula"] = h
			}
			raw, err := json.Marshal(hostreport.Report{Format: document.NewestFormat, Facts: hostreport.Facts{Capabilities: c.has}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := Absent(top, map[string]hostreport.Kept{"ursula": {Received: unixtime.Of(now.Add(-c.age)), Report: raw}}, now); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func needKVM(t *compile.Topology, h *compile.Host) {
	h.Roles, t.Roles = []string{"runner"}, map[string]compile.Role{"runner": {Requires: []string{"kvm"}}}
}
