package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// since1900 is the number of seconds from 1900 to the Unix epoch.
const since1900 = 2_208_988_800

// tellTime runs a time server (RFC 868), which answers each datagram with the current time.
func tellTime(ctx context.Context, address string) error {
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("service: %w: is another demo running?", err)
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	go func() {
		for {
			_, from, err := c.ReadFrom(nil)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(binary.BigEndian.AppendUint32(nil, uint32(time.Now().Unix()+since1900)), from)
		}
	}()
	return nil
}

// askTime gets the time from the time server by sending an empty datagram (RFC 868).
func (s *demo) askTime(host string) (string, error) {
	address, err := s.local(host, "service/time")
	if err != nil {
		return "", err
	}
	c, err := net.Dial("udp", address.String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(nil); err != nil {
		return "", err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	var b [4]byte
	if _, err := c.Read(b[:]); err != nil {
		return "", err
	}
	now := time.Unix(int64(binary.BigEndian.Uint32(b[:]))-since1900, 0)
	if off := time.Since(now).Abs(); off > time.Minute {
		return fmt.Sprintf("a time that is off by %s", off), nil
	}
	return "the time", nil
}
