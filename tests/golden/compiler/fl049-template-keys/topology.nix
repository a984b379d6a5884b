{ base, merge, ... }:
merge base {
  trust = {
    inherit ((import ../../../../nix/templates/cluster/cluster.nix).trust) signingKeys roots;
  };
  hosts.alpha = {
    inherit (import ../../../../nix/templates/cluster/hosts/home/forge.nix) sshHostKey;
  };
  hosts.beta.sshHostKey =
    (import ../../../../nix/templates/cluster/hosts/laptop.nix).sshHostKey + " root@beta\n";
}
