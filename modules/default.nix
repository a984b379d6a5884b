# NixOS modules: options → the same documents and units as anywhere else.
# packages is system → packages of the flake.
packages:
let
  module = file: { imports = [ ./cluster.nix (import file packages) ]; };
in
rec {
  host = module ./host.nix;
  forwarder = module ./forwarder.nix;
  provider = module ./provider.nix;
  # Everything that the host's documents ask for.
  default = { imports = [ host forwarder provider ]; };
}
