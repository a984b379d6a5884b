"""Hosts with systemd as PID 1, driven as the NixOS test driver drives its machines."""
