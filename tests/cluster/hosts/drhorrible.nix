# The forge, which provides for all hosts.
{ on, me }: on 1 { }
