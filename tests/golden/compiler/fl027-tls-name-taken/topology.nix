{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  services.wiki = {
    visibility = "public";
    tlsName = "wiki.example.org";
    tlsAliases = [
      "*.example.org"
      "docs.example.org"
    ];
  };
  services.shop = {
    host = "beta";
    port = 2;
    visibility = "public";
    tlsName = "docs.example.org";
    tlsAliases = [
      "*.example.org"
      "docs.example.org"
    ];
  };
  services.blog = {
    host = "beta";
    port = 1;
    visibility = "public";
    tlsName = "wiki.example.org";
  };
  services.proxy = {
    host = "alpha";
    port = 443;
    visibility = "host";
    roles = [ "reader" ];
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "shop"
  ];
}
