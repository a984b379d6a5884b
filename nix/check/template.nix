# Keys of the template that are still in use. Nobody has their private halves, so hosts and
# documents that depend on them do not work.
{ clean, lib, ... }:
let
  inherit (builtins)
    concatLists
    elem
    elemAt
    genList
    length
    readFile
    ;
  inherit (lib) fault show when;

  cluster = import ../templates/cluster/cluster.nix;
  hosts = map import [
    ../templates/cluster/hosts/laptop.nix
    ../templates/cluster/hosts/home/forge.nix
  ];

  keys = map (h: h.sshHostKey) hosts;

  own =
    value: place: remedy:
    fault {
      id = "FL049";
      inherit place remedy;
      problem = "it is still the template's, whose private half was thrown away:";
      value = show value;
    };
  each =
    place: list: theirs: remedy:
    concatLists (
      genList (
        i: when (elem (elemAt list i) theirs) [ (own (elemAt list i) "${place}[${toString i}]" remedy) ]
      ) (length list)
    );
in
{
  top =
    each "trust.roots" clean.trust.roots (map readFile cluster.trust.roots)
      "make your own with florctl ca init, outside the flake, and copy its ca.crt here"
    ++
      each "trust.signingKeys" clean.trust.signingKeys cluster.trust.signingKeys
        "make your own with nix key generate-secret, outside the flake, and write its public half";
  host =
    n: h:
    when (elem h.sshHostKey keys) [
      (own h.sshHostKey "hosts.${n}.sshHostKey"
        "write the line of /etc/ssh/ssh_host_ed25519_key.pub on the host"
      )
    ];
}
