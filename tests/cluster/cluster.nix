let
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
in
{
  name = "demo";
  trustDomain = "demo.flor";
  trust = {
    roots = [ ./ca.crt ];
    signingKeys = facts.keys;
  };

  hosts = import ./hosts facts;
  services = import ./services.nix facts;
  users = import ./users.nix;
  roles = import ./roles.nix;
  serviceGroups = import ./serviceGroups.nix;
  providers = import ./providers.nix;
}
