# Facts, which others read at evaluation, are in no document: same-without.nix.
{ base, merge, ... }:
merge base {
  hosts.alpha.facts = {
    vpn-key = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=";
    metrics = 9100;
  };
  hosts.beta.facts.metrics = 9101;
  services.wiki.facts = {
    metrics = 9102;
    names = [
      "wiki.example.org"
      "docs.example.org"
    ];
    public = true;
  };
}
