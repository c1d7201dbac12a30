"""The mod `files`: what belongs to messages and is kept beside the log.

mod          operations, attachments of messages
schemas      inputs and outputs
uploads      settings; uploads in parts, within quotas
repository   tables, who may read what, and contents in a folder, by their checksums
media_types  names and types that are true
reader       text of a file, packed and office files within limits
pdf_worker   text of a PDF, in a process of its own
"""
