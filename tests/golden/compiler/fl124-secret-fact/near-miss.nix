{ base, merge, ... }:
merge base {
  hosts.alpha.facts.vpn-public-key = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=";
  services.wiki.facts.admins = [ "ann" ];
  roles.node.services = [ "wiki" ];
}
