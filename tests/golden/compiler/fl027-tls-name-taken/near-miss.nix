{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  services.wiki = {
    hosts = [
      "alpha"
      "beta"
    ];
    host = "";
    visibility = "public";
    tlsName = "wiki.example.org";
  };
  services.blog = {
    host = "beta";
    port = 1;
    visibility = "public";
    tlsName = "blog.wiki.example.org";
    tlsAliases = [
      "*.example.org"
      "*.wiki.example.org"
      "example.org"
    ];
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
  ];
}
