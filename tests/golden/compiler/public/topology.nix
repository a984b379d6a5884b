# An ingress, alpha, learns the public name of the service that it reaches. Beta reaches the same
# service and is no ingress; gamma is an ingress and reaches no service with a public name.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    capabilities = [ "ingress" ];
    roles = [ "blogger" ];
  };
  services = {
    wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
    };
    blog = {
      host = "beta";
      port = 8081;
      visibility = "public";
    };
    proxy = {
      host = "alpha";
      port = 443;
      visibility = "host";
      user = "nginx";
      roles = [ "reader" ];
    };
  };
  roles.blogger.services = [ "blog" ];
}
