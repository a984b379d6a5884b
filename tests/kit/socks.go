package kit

import (
	"io"
	"net"

	"github.com/things-go/go-socks5/statute"
)

// SOCKSTo starts a SOCKS5 proxy (RFC 1928) on a loopback address. It connects every client to the
// given address, even if the client requests another one. To stop the proxy, close the returned
// listener.
func SOCKSTo(address string) net.Listener {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	carry := func(c net.Conn) {
		defer c.Close()
		if _, err := statute.ParseMethodRequest(c); err != nil {
			return
		}
		if _, err := c.Write([]byte{statute.VersionSocks5, statute.MethodNoAuth}); err != nil {
			return
		}
		if _, err := statute.ParseRequest(c); err != nil {
			return
		}
		to, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer to.Close()
		if _, err := c.Write(statute.Reply{Version: statute.VersionSocks5, Response: statute.RepSuccess, BndAddr: statute.AddrSpec{IP: net.IPv4zero, AddrType: statute.ATYPIPv4}}.Bytes()); err != nil {
			return
		}
		go func() {
			io.Copy(to, c)
			to.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, to)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go carry(c)
		}
	}()
	return ln
}
