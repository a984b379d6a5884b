# One address needs no brackets, and the order of attributes has no effect.
{ merge, ... }@arguments:
merge (import ./topology.nix arguments) {
  hosts.alpha.address = [ "198.51.100.7:14610" ];
  hosts.alpha.networks = {
    lab = [
      "10.9.0.1"
      "alpha.lan"
    ];
    home = [
      "10.0.0.1"
      "alpha.lan"
    ];
  };
}
