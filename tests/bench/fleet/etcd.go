package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// These constants are the stores in which a provider can keep its state.
const (
	engineSQLite = "sqlite"
	engineEtcd   = "etcd"
)

// members is the number of members of etcd, all of which run on this machine.
const members = 3

// open starts a store with its files in a directory. The returned function kind opens the store for
// a kind of need. The returned function end stops the store.
func open(engine, dir string) (kind func(string) (store.Store, error), end func(), err error) {
	if engine == engineSQLite {
		return func(kind string) (store.Store, error) {
			return sqlite.Open(filepath.Join(dir, kind+".db"), sqlite.Options{})
		}, func() {}, nil
	}
	endpoints, end, err := startEtcd(dir)
	return func(kind string) (store.Store, error) {
		return etcd.Open(etcd.Config{Endpoints: endpoints, Tree: kind})
	}, end, err
}

func startEtcd(dir string) (endpoints []string, end func(), err error) {
	var initial, peers []string
	for i := range members {
		client, peer := "http://"+kit.Address(), "http://"+kit.Address()
		endpoints, peers = append(endpoints, client), append(peers, peer)
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peer))
	}
	var running []*exec.Cmd
	end = func() {
		for _, c := range running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	found, err := program.Find("etcd")
	if err != nil {
		return nil, nil, err
	}
	command := found.Command
	for i, client := range endpoints {
		c := exec.Command(command[0], append(command[1:], "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peers[i],
			"--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(initial, ","), "--log-level", "error")...)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			end()
			return nil, nil, err
		}
		running = append(running, c)
	}
	return endpoints, end, nil
}
