{ base, merge, ... }:
merge base {
  hosts.alpha.facts.vpn-private-key = "gI6EdUSYvn8ugXOt8QQD6Yc+JyiZxIhp3GInSWRfWGE=";
  services.wiki.facts.admin-password = "to be chosen";
  roles.node.services = [ "wiki" ];
}
