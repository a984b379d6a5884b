package main

import (
	"fmt"
	"path/filepath"

	"github.com/florete/florete/tests/kit"
)

// howToUse prints how to use the cluster of the demo while it keeps running.
func (s *demo) howToUse() {
	socks, err := s.socks(newcomer, "user/alice")
	if err != nil {
		fmt.Println("demo:", err)
		return
	}
	fmt.Printf(`
The cluster keeps running in %s. As alice on her laptop:
  curl --socks5-hostname %s http://outline.%s.rete/
  her browser, with the same SOCKS5 proxy, logs in at http://outline.%[3]s.rete/login as %s, password %s
What a host's forwarder does:
  %s status --socket %s
What the provider decided:
  %s audit --settings %s
Interrupt (Ctrl-C) to stop everything.
`, s.Work, socks, kit.Domain, alicesMail, s.password,
		filepath.Join(s.Bin, "flor"), s.hosts["ursula"].Socket(),
		filepath.Join(s.Bin, "flor-provider"), filepath.Join(s.hosts[forge].Dir, "provider.hujson"))
}
